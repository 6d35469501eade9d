"""Puts a child down whose start or whose heartbeat is overdue, or in which a call is stuck."""

import logging

import anyio
import msgspec

from outboxd.core.clock import boottime
from outboxd.pacing import pause
from outboxd.supervision.incarnation import Incarnation
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.stopping import StopOrder

log = logging.getLogger(__name__)

SECOND_LOOK_SECONDS = 0.5
STALL_SHARE = 0.5
"""Having slept longer than meant by this share of a deadline, nobody's silence counts."""


class Deadlines(msgspec.Struct, frozen=True):
    """How long a child may take to become ready, and how long it may then be silent."""

    start_seconds: float
    heartbeat_seconds: float

    def overdue_at(self, incarnation: Incarnation) -> float:
        """When the deadline that counts now is over."""
        if incarnation.ready_at is None:
            return max(incarnation.started_at, incarnation.rearmed_at) + self.start_seconds
        return max(incarnation.heard_at, incarnation.rearmed_at) + self.heartbeat_seconds

    def stalled(self, incarnation: Incarnation, late_seconds: float) -> bool:
        """Whether we ourselves overslept so long that the deadline says nothing about the child."""
        ready = incarnation.ready_at is not None
        deadline = self.heartbeat_seconds if ready else self.start_seconds
        return late_seconds > STALL_SHARE * deadline


async def watch_clocks(incarnation: Incarnation, deadlines: Deadlines, order: StopOrder) -> None:
    """Put the child down when a deadline has passed; once a stop is ordered its timetable counts.

    Only at a second look: a supervisor that stood still itself, in a paused machine, finds
    everything overdue when it wakes, while what its healthy children have said since then still
    waits to be read. When the machine was suspended, they had no time to say anything: after a
    long stall every deadline begins anew. A stuck call needs none of it: only what the child has
    said tells of it.
    """
    while not order.given.is_set():
        late = await _sleep_until_overdue(incarnation, deadlines)
        if deadlines.stalled(incarnation, late) and not incarnation.calls.stuck.is_set():
            incarnation.rearmed_at = boottime()
            facts = {"child": str(incarnation.address), "seconds": round(late, 1)}
            log.warning("the supervisor stood still; the child's deadline begins anew", extra=facts)
            continue
        if not incarnation.calls.stuck.is_set():
            await anyio.sleep(SECOND_LOOK_SECONDS)
        reason = _fault(incarnation, deadlines)
        if reason is not None and not order.given.is_set():
            await incarnation.put_down(reason)
            return


async def _sleep_until_overdue(incarnation: Incarnation, deadlines: Deadlines) -> float:
    """How much later than meant the last sleep ended, in seconds."""
    late = 0.0
    while (left := deadlines.overdue_at(incarnation) - boottime()) > 0:
        if incarnation.calls.stuck.is_set():
            return 0.0
        before = boottime()
        if incarnation.ready_at is None:
            await pause(incarnation.became_ready, left)  # then the shorter deadline counts
        else:
            await pause(incarnation.calls.stuck, left)
        late = boottime() - before - left
    return late


def _fault(incarnation: Incarnation, deadlines: Deadlines) -> RestartReason | None:
    """What is wrong with the child, if anything is."""
    if incarnation.calls.stuck.is_set():
        return RestartReason.STUCK
    if boottime() < deadlines.overdue_at(incarnation):
        return None
    if incarnation.ready_at is None:
        return RestartReason.STARTUP_TIMEOUT
    return RestartReason.HEARTBEAT
