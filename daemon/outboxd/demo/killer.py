"""Kills children at random, as a kernel short of memory would."""

import logging
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager

from msgspec import Struct

from outboxd.demo.processes import Child, children_of, kill

logger = logging.getLogger(__name__)


class Kills(Struct, frozen=True):
    """How often each role was killed; `awaited` are those that the end of the run still waits for.

    A role is awaited when all work is done and it has not had its turn.
    """

    by_role: Mapping[str, int]
    awaited: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.by_role.values())


def choose(children: tuple[Child, ...], spared: Set[str], dice: random.Random) -> Child | None:
    """Whom to kill next: every role has its turn before chance alone decides."""
    candidates = [child for child in children if child.role in spared] or list(children)
    return dice.choice(candidates) if candidates else None


class Killer(threading.Thread):
    """SIGKILLs one child every `every_seconds` until it is told that the work is done.

    It goes on after that until every role that was seen has been killed at least once.
    """

    def __init__(self, supervisor: int, every_seconds: float, seed: int) -> None:
        super().__init__(name="killer")
        self._supervisor = supervisor
        self._every_seconds = every_seconds
        self._dice = random.Random(seed)
        self._seen: set[str] = set()
        self._work_done = threading.Event()
        self._stopping = threading.Event()
        self._kills: Counter[str] = Counter()

    @property
    def kills(self) -> Kills:
        """What it has done so far: a copy, since this thread may be writing it."""
        awaited = self.spared if self._work_done.is_set() else ()
        return Kills(dict(self._kills), tuple(sorted(awaited)))

    @property
    def spared(self) -> Set[str]:
        """Roles that have been seen and never been killed."""
        return self._seen - self._kills.keys()

    @property
    def satisfied(self) -> bool:
        """Whether the work is done and every role has had its turn."""
        return self._work_done.is_set() and bool(self._seen) and not self.spared

    def work_done(self) -> None:
        """Every expected effect exists: kill only the roles that were spared so far."""
        self._work_done.set()

    def stop(self) -> None:
        """Kill no more."""
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.wait(self._every_seconds) and not self.satisfied:
            self.kill_one()

    def kill_one(self) -> None:
        """One round: look who lives, choose, kill."""
        children = children_of(self._supervisor)
        self._seen |= {child.role for child in children}
        if self.satisfied:
            return
        victim = choose(children, self.spared, self._dice)
        if victim is not None and kill(victim, self._supervisor):
            self._kills[victim.role] += 1
            logger.info("killed", extra={"role": victim.role, "pid": victim.pid})


@contextmanager
def killing(supervisor: int, every_seconds: float | None, seed: int) -> Iterator[Killer | None]:
    """A killer at work while the block lasts; None when nobody is to be killed."""
    if every_seconds is None:
        yield None
        return
    killer = Killer(supervisor, every_seconds, seed)
    killer.start()
    try:
        yield killer
    finally:
        killer.stop()
        killer.join()
