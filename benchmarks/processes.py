"""What processes have used, as the kernel counts it (proc(5); Linux only)."""

import os
from collections.abc import Iterator
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


def cpu_seconds(root: int) -> dict[int, float]:
    """CPU of a process and of its living descendants, by process id.

    What ended children had used is in their parent's figure, so the sum never shrinks.
    """
    stats = {stat.pid: stat for stat in _stats()}
    family = {root}
    grown = True
    while grown:
        more = {stat.pid for stat in stats.values() if stat.parent in family} - family
        family |= more
        grown = bool(more)
    return {pid: stats[pid].cpu_seconds for pid in family if pid in stats}


def peak_megabytes(pid: int) -> float:
    """The most memory that was resident at a time; pages shared with others count in full."""
    for line in PROC.joinpath(str(pid), "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


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
