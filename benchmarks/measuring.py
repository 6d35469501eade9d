"""One measurement: from the first event that is worked on to the last one that is done."""

import time
from collections.abc import Callable
from enum import Enum, auto

import msgspec

from benchmarks.errors import BenchmarkError
from benchmarks.processes import cpu_seconds, peak_megabytes
from benchmarks.subjects import Subject

POLL_SECONDS = 0.02
LIMIT_SECONDS = 120.0
TICK = 0.01
"""The grain of the kernel's CPU times: less than one is not told from nothing."""


class Phase(Enum):
    """How far the work is."""

    WAITING = auto()
    UNDER_WAY = auto()
    DONE = auto()


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What the work took; CPU and memory by the name of the process."""

    seconds: float
    cpu_seconds: dict[str, float]
    peak_megabytes: dict[str, float]
    database_cpu_seconds: float

    @property
    def total_cpu_seconds(self) -> float:
        """Of all of the subject's processes; the database is not one of them."""
        return max(TICK, sum(self.cpu_seconds.values()))


def measure(subject: Subject, phase: Callable[[], Phase], database: int) -> Measured:
    """Watch the subject work. Raises BenchmarkError when it does not get done.

    The clock starts at the last look before the first effect: starting up, imports included, is not
    measured. `database` is the process id of PostgreSQL.
    """
    deadline = time.monotonic() + LIMIT_SECONDS
    began, before, database_before = _look(subject, database)
    while (now := phase()) is Phase.WAITING:
        _check(subject, deadline)
        began, before, database_before = _look(subject, database)
        time.sleep(POLL_SECONDS)
    while now is not Phase.DONE:
        _check(subject, deadline)
        time.sleep(POLL_SECONDS)
        now = phase()
    ended, after, database_after = _look(subject, database)
    names = subject.names()
    return Measured(
        seconds=ended - began,
        cpu_seconds={name: after[pid] - before.get(pid, 0.0) for pid, name in names.items()},
        peak_megabytes={name: peak_megabytes(pid) for pid, name in names.items()},
        database_cpu_seconds=database_after - database_before,
    )


def _look(subject: Subject, database: int) -> tuple[float, dict[int, float], float]:
    return (
        time.monotonic(),
        cpu_seconds(subject.pid),
        sum(cpu_seconds(database).values()),
    )


def _check(subject: Subject, deadline: float) -> None:
    if (words := subject.last_words()) is not None:
        raise BenchmarkError(words)
    if time.monotonic() > deadline:
        raise BenchmarkError(f"the work was not done after {LIMIT_SECONDS:g} s")
