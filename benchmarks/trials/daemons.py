"""Daemons that are watched from their exec on, and ended at once when all is seen."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.place import Place
from benchmarks.subjects import Program
from outboxd.core.clock import boottime
from outboxd.demo.processes import Child, children_of, kill
from outboxd.demo.supervisor import Supervisor, supervising

LOOK_SECONDS = 0.005
LIMIT_SECONDS = 60.0


@contextmanager
def daemon(place: Place, number: int = 0) -> Iterator[Supervisor]:
    """`outboxd run` on the place's configuration, not awaited; further ones have other numbers.

    It is killed in the end: it has been measured, and a drain would last as long as its long polls.
    """
    log = place.configuration.with_name(f"{place.configuration.stem}-{number}.log")
    with supervising(place.configuration, place.settings, log) as supervisor:
        try:
            yield supervisor
        finally:
            with suppress(ProcessLookupError):
                os.kill(supervisor.pid, signal.SIGSTOP)  # so that it starts no successors
                for child in children_of(supervisor.pid):
                    kill(child, supervisor.pid)
                os.kill(supervisor.pid, signal.SIGKILL)


@contextmanager
def ready_daemon(place: Place, number: int = 0) -> Iterator[Supervisor]:
    """The same, once it is ready."""
    with daemon(place, number) as supervisor:
        supervisor.await_ready(lambda: False)
        yield supervisor


def pool_of(supervisor: Supervisor) -> Child:
    """The process of its one pool."""
    pools = [c for c in children_of(supervisor.pid) if c.role.startswith("consumer:")]
    if len(pools) != 1:
        raise BenchmarkError(f"there are {len(pools)} consumer processes instead of one")
    return pools[0]


def kill_pool(supervisor: Supervisor) -> float:
    """SIGKILL its pool's process; the moment of boottime() just before."""
    pool = pool_of(supervisor)
    at = boottime()
    if not kill(pool, supervisor.pid):
        raise BenchmarkError("the pool ended before it was killed")
    return at


def await_fact(
    fact: Callable[[], bool],
    what: str,
    subject: Supervisor | Program,
    limit_seconds: float = LIMIT_SECONDS,
) -> None:
    """Look until it is one. Raises BenchmarkError when the subject has ended, or time is over."""
    deadline = time.monotonic() + limit_seconds
    while not fact():
        if (words := subject.last_words()) is not None:
            raise BenchmarkError(words)
        if time.monotonic() > deadline:
            raise BenchmarkError(f"{what}: not after {limit_seconds:g} s")
        time.sleep(LOOK_SECONDS)


def beside(place: Place, name: str) -> Path:
    """A file beside the place's configuration, gone with it."""
    return place.configuration.with_name(f"{place.configuration.stem}-{name}")
