"""What processes have used, as the kernel counts it (proc(5); Linux only)."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
_PARENT, _CPU = 1, slice(11, 15)
"""Positions behind the command's closing parenthesis: ppid; utime, stime, cutime, cstime."""


class _Stat(msgspec.Struct, frozen=True):
    pid: int
    parent: int
    cpu_seconds: float


class Memory(msgspec.Struct, frozen=True):
    """Megabytes. A page that is shared counts in full in `rss`, by its share in `pss`, and not at
    all in `private`."""

    rss: float
    pss: float
    private: float


class Processes:
    """All processes of this moment."""

    def __init__(self) -> None:
        self._stats = {stat.pid: stat for stat in _stats()}

    def cpu_seconds(self, root: int) -> dict[int, float]:
        """CPU of a process and of its living descendants, by process id.

        What ended children had used is in their parent's figure, so the sum never shrinks.
        """
        family = {root}
        grown = True
        while grown:
            more = {stat.pid for stat in self._stats.values() if stat.parent in family} - family
            family |= more
            grown = bool(more)
        return {pid: self._stats[pid].cpu_seconds for pid in family if pid in self._stats}

    def children(self, parent: int) -> set[int]:
        """Its own children that have not been reaped."""
        return {stat.pid for stat in self._stats.values() if stat.parent == parent}


def memory(pids: Iterable[int]) -> dict[int, Memory]:
    """Of those that are still there. The kernel walks the page tables for it: ask now and then."""
    found: dict[int, Memory] = {}
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            found[pid] = _memory(PROC.joinpath(str(pid), "smaps_rollup").read_text())
    return found


def peak_megabytes(pid: int) -> float:
    """The most memory that was resident at a time; pages shared with others count in full."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in PROC.joinpath(str(pid), "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _memory(rollup: str) -> Memory:
    kilobytes = {
        name: int(rest.split()[0])
        for name, colon, rest in (line.partition(":") for line in rollup.splitlines()[1:])
        if colon
    }
    return Memory(
        rss=kilobytes["Rss"] / 1024,
        pss=kilobytes["Pss"] / 1024,
        private=(kilobytes["Private_Clean"] + kilobytes["Private_Dirty"]) / 1024,
    )


def _stats() -> Iterator[_Stat]:
    for entry in os.listdir(PROC):
        if not entry.isdigit():
            continue
        try:
            text = PROC.joinpath(entry, "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        # The command in parentheses may hold spaces and parentheses itself.
        fields = text.rpartition(")")[2].split()
        ticks = sum(int(field) for field in fields[_CPU])
        yield _Stat(int(entry), int(fields[_PARENT]), ticks / TICKS)
