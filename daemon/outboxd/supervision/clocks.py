"""Puts a child down whose start or whose heartbeat is overdue, or in which a call is stuck."""

import anyio
import msgspec

from outboxd.core.clock import boottime
from outboxd.pacing import pause
from outboxd.supervision.incarnation import Incarnation
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.stopping import StopOrder

SECOND_LOOK_SECONDS = 0.5


class Deadlines(msgspec.Struct, frozen=True):
    """How long a child may take to become ready, and how long it may then be silent."""

    start_seconds: float
    heartbeat_seconds: float

    def overdue_at(self, incarnation: Incarnation) -> float:
        """When the deadline that counts now is over."""
        if incarnation.ready_at is None:
            return incarnation.started_at + self.start_seconds
        return incarnation.heard_at + self.heartbeat_seconds


async def watch_clocks(incarnation: Incarnation, deadlines: Deadlines, order: StopOrder) -> None:
    """Put the child down when a deadline has passed; once a stop is ordered its timetable counts.

    Only at a second look: a supervisor that stood still itself, in a paused machine, finds
    everything overdue when it wakes, while what its healthy children have said since then still
    waits to be read. A stuck call needs none: only what the child has said tells of it.
    """
    while not order.given.is_set():
        await _sleep_until_overdue(incarnation, deadlines)
        if not incarnation.calls.stuck.is_set():
            await anyio.sleep(SECOND_LOOK_SECONDS)
        reason = _fault(incarnation, deadlines)
        if reason is not None and not order.given.is_set():
            await incarnation.put_down(reason)
            return


async def _sleep_until_overdue(incarnation: Incarnation, deadlines: Deadlines) -> None:
    while (left := deadlines.overdue_at(incarnation) - boottime()) > 0:
        if incarnation.calls.stuck.is_set():
            return
        if incarnation.ready_at is None:
            await pause(incarnation.became_ready, left)  # then the shorter deadline counts
        else:
            await pause(incarnation.calls.stuck, left)


def _fault(incarnation: Incarnation, deadlines: Deadlines) -> RestartReason | None:
    """What is wrong with the child, if anything is."""
    if incarnation.calls.stuck.is_set():
        return RestartReason.STUCK
    if boottime() < deadlines.overdue_at(incarnation):
        return None
    if incarnation.ready_at is None:
        return RestartReason.STARTUP_TIMEOUT
    return RestartReason.HEARTBEAT
