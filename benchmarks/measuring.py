"""One measurement: from the first event that is worked on to the last one that is done."""

import time
from enum import Enum, auto
from typing import Protocol

import msgspec

from benchmarks.errors import BenchmarkError
from benchmarks.local_sqs import QueueView
from benchmarks.place import Place
from benchmarks.processes import Processes, memory, peak_megabytes
from benchmarks.subjects import Subject

POLL_SECONDS = 0.02
MEMORY_SECONDS = 0.25
LIMIT_SECONDS = 120.0
TICK = 0.01
"""The grain of the kernel's CPU times: less than one is not told from nothing."""

SETTLED_SECONDS = 0.5
SETTLED_TICKS = 3
SETTLE_LIMIT_SECONDS = 20.0


class Phase(Enum):
    """How far the work is."""

    WAITING = auto()
    UNDER_WAY = auto()
    DONE = auto()


class Work(Protocol):
    """The work of one run."""

    held: bool
    """Whether it only begins when it is released, to subjects that have started by then."""

    def phase(self) -> Phase:
        """How far it is."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What the work took; what is by process is by its name."""

    seconds: float
    cpu_seconds: float
    """Of all of the subject's processes; neither the database nor the SQS is one of them."""

    cpu_by_process: dict[str, float]
    started_cpu_seconds: float
    """What starting had cost, before the first event."""

    peak_rss: float
    peak_pss: float
    """Megabytes, of all processes together."""

    peak_rss_by_process: dict[str, float]
    private_by_process: dict[str, float]
    database_cpu_seconds: float
    sqs_cpu_seconds: float
    calls: dict[str, int]
    """By operation; empty where the server does not count."""


class _Look(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    cpu: dict[int, float]
    database: float
    sqs: float
    calls: dict[str, int]


class _Peaks:
    """The most memory that was seen; looking costs something, so it is not done each time."""

    def __init__(self) -> None:
        self.rss = self.pss = 0.0
        self._next = 0.0

    def look(self, root: int) -> None:
        if time.monotonic() < self._next:
            return
        found = memory(Processes().cpu_seconds(root)).values()
        self.rss = max(self.rss, sum(each.rss for each in found))
        self.pss = max(self.pss, sum(each.pss for each in found))
        self._next = time.monotonic() + MEMORY_SECONDS


def measure(subject: Subject, work: Work, place: Place, view: QueueView) -> Measured:
    """Watch the subject work. Raises BenchmarkError when it does not get done.

    Starting up, imports included, is not measured. Work that can be held is released when all of
    the subject's processes have come to rest; otherwise the clock starts at the last look before
    the first effect.
    """
    deadline = time.monotonic() + LIMIT_SECONDS
    peaks = _Peaks()
    if work.held:
        _settle(subject, view)
        before = _look(subject, place, view)
        view.release()
        now = work.phase()
    else:
        before = _look(subject, place, view)
        while (now := work.phase()) is Phase.WAITING:
            _check(subject, deadline)
            before = _look(subject, place, view)
            time.sleep(POLL_SECONDS)
    while now is not Phase.DONE:
        _check(subject, deadline)
        peaks.look(subject.pid)
        time.sleep(POLL_SECONDS)
        now = work.phase()
    after = _look(subject, place, view)
    peaks.look(subject.pid)
    return _measured(subject, before, after, peaks)


def _measured(subject: Subject, before: _Look, after: _Look, peaks: _Peaks) -> Measured:
    names = subject.names()
    by_process: dict[str, float] = {}
    for pid, seconds in after.cpu.items():
        name = names.get(pid, "others")
        by_process[name] = by_process.get(name, 0.0) + seconds - before.cpu.get(pid, 0.0)
    if not names:
        by_process = {}
    return Measured(
        seconds=after.at - before.at,
        cpu_seconds=max(TICK, sum(after.cpu.values()) - sum(before.cpu.values())),
        cpu_by_process=by_process,
        started_cpu_seconds=sum(before.cpu.values()),
        peak_rss=peaks.rss,
        peak_pss=peaks.pss,
        peak_rss_by_process={name: peak_megabytes(pid) for pid, name in names.items()},
        private_by_process={
            names[pid]: each.private for pid, each in memory(names).items() if pid in names
        },
        database_cpu_seconds=after.database - before.database,
        sqs_cpu_seconds=after.sqs - before.sqs,
        calls={
            operation: count - before.calls.get(operation, 0)
            for operation, count in after.calls.items()
        },
    )


def _look(subject: Subject, place: Place, view: QueueView) -> _Look:
    calls = view.calls()
    processes = Processes()
    return _Look(
        at=time.monotonic(),
        cpu=processes.cpu_seconds(subject.pid),
        database=sum(processes.cpu_seconds(place.database_pid).values()),
        sqs=sum(processes.cpu_seconds(place.server.pid).values()),
        calls=calls,
    )


def _settle(subject: Subject, view: QueueView) -> None:
    """Wait until it has asked for messages, and then for nothing else to do."""
    deadline = time.monotonic() + SETTLE_LIMIT_SECONDS
    before = Processes().cpu_seconds(subject.pid)
    while time.monotonic() < deadline:
        time.sleep(SETTLED_SECONDS)
        _check(subject, deadline)
        after = Processes().cpu_seconds(subject.pid)
        used = sum(after.values()) - sum(before.values())
        rests = after.keys() == before.keys() and used <= SETTLED_TICKS * TICK
        if rests and view.calls().get("ReceiveMessage", 0) > 0:
            return
        before = after
    # One that never rests is measured all the same: its unrest is its own.


def _check(subject: Subject, deadline: float) -> None:
    if (words := subject.last_words()) is not None:
        raise BenchmarkError(words)
    if time.monotonic() > deadline:
        raise BenchmarkError(f"the work was not done after {LIMIT_SECONDS:g} s")
