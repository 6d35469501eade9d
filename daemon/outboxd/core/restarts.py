"""When a child may be started again, and when to give up on it."""

import random
from collections import deque

import msgspec

from outboxd.core.retry import Backoff, Dice
from outboxd.core.settings import SupervisorSettings


class RestartLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Two limits that must not be mixed: starts that never became ready have no time window, since
    several start deadlines never fit into a short one; crashes after ready are counted in one."""

    failed_starts: int = 3
    crashes: int = 5
    crash_window_seconds: float = 600.0
    stable_seconds: float = 60.0
    backoff: Backoff = Backoff(first_seconds=0.5, factor=2.0, cap_seconds=30.0, jitter=1.0)


class RestartLog:
    """Remembers the unplanned exits of one child; planned ones are never told to it."""

    def __init__(self, limits: RestartLimits, dice: Dice = random.random) -> None:
        self.limits = limits
        self._dice = dice
        self._failed_starts = 0
        self._crashes: deque[float] = deque()
        self._in_a_row = 0

    def never_ready(self) -> None:
        """The child ended, or was ended, before it was ready."""
        self._failed_starts += 1
        self._in_a_row += 1

    def crashed(self, now: float, ready_seconds: float) -> None:
        """The child ended at `now`, having been ready for `ready_seconds`."""
        self._failed_starts = 0
        if ready_seconds >= self.limits.stable_seconds:
            self._in_a_row = 0
        self._in_a_row += 1
        self._crashes.append(now)
        while self._crashes and self._crashes[0] <= now - self.limits.crash_window_seconds:
            self._crashes.popleft()

    @property
    def never_started(self) -> bool:
        """Too many starts in a row never became ready."""
        return self._failed_starts >= self.limits.failed_starts

    @property
    def crash_looping(self) -> bool:
        """Too many crashes after ready within the window."""
        return len(self._crashes) >= self.limits.crashes

    @property
    def exhausted(self) -> bool:
        return self.never_started or self.crash_looping

    def pause_seconds(self) -> float:
        """How long to wait before the next start."""
        return self.limits.backoff.delay(self._in_a_row, self._dice)

    def forgive(self) -> None:
        """Start counting afresh, as for a child that is tried again slowly after giving up."""
        self._failed_starts = 0
        self._crashes.clear()


def restart_limits(settings: SupervisorSettings) -> RestartLimits:
    """The limits of every child, from the [supervisor] table."""
    return RestartLimits(
        failed_starts=settings.failed_starts,
        crashes=settings.crashes,
        crash_window_seconds=settings.crash_window_seconds,
        backoff=Backoff(
            first_seconds=settings.backoff_first_seconds,
            cap_seconds=settings.backoff_cap_seconds,
            jitter=1.0,
        ),
    )
