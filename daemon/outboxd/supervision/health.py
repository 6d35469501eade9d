"""Whether the daemon lives and works, judged from what the supervisor has heard."""

from collections.abc import Callable, Sequence

from outboxd.core.children import Kind
from outboxd.core.clock import boottime
from outboxd.supervision.http import ChildRow
from outboxd.supervision.life import Life
from outboxd.supervision.observing import State
from outboxd.supervision.supervisor import Supervisor

RECEIVE_PATIENCE_SECONDS = 30.0
"""A pool whose last answered receive is older than this, or than three long polls, is deaf."""


class SupervisorHealth:
    """Implements http.Health. It asks nobody: neither a child, nor PostgreSQL, nor AWS."""

    def __init__(
        self,
        supervisor: Supervisor,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._supervisor = supervisor
        self._clock = clock

    def alive(self) -> Sequence[str]:
        """The relay and the extender must work; a pool that gave up is tried again slowly."""
        return [
            *self._supervisor.broken_invariants(),
            *self._gave_up(),
        ]

    def _gave_up(self) -> Sequence[str]:
        return [
            f"{life.name} has given up"
            for life in self._supervisor.lives
            if life.state is State.FAILED and life.spec.slot.kind is not Kind.CONSUMER
        ]

    def ready(self) -> Sequence[str]:
        """Every child is ready, and every pool receives."""
        if self._supervisor.stopping:
            return ["stopping"]
        lives = self._supervisor.lives
        return [problem for life in lives if (problem := self._why_not_ready(life))]

    def children(self) -> Sequence[ChildRow]:
        return [self._row(life) for life in self._supervisor.lives]

    def _why_not_ready(self, life: Life) -> str:
        if not life.ready:
            return f"{life.name} is {life.state.value}"
        if life.spec.slot.kind is Kind.CONSUMER and (silence := self._deaf_for(life)):
            return f"{life.name} has not received for {silence:.0f} s"
        return ""

    def _deaf_for(self, life: Life) -> float:
        """Seconds without an answered receive, 0 when that is in order.

        A pool whose slots are all taken asks for nothing, and is not deaf; nor is one that an
        operator has paused.
        """
        current = life.current
        if current is None or current.heartbeat is None or current.ready_at is None:
            return 0.0
        name = life.spec.slot.queue
        queue = life.terms.settings.queues[name]
        pauses = self._supervisor.pauses
        if pauses.paused(name) or current.heartbeat.in_flight >= queue.concurrency:
            return 0.0
        heard = max(current.heartbeat.last_receive_at or current.ready_at, pauses.resumed_at(name))
        silence = self._clock() - heard
        patience = max(RECEIVE_PATIENCE_SECONDS, 3.0 * queue.wait_seconds)
        return silence if silence > patience else 0.0

    def _row(self, life: Life) -> ChildRow:
        current = life.current
        return ChildRow(
            name=life.name,
            state=life.state.value,
            pid=current.process.pid if current else None,
            restarts=life.restarts,
            heartbeat_age=self._clock() - current.heard_at if current else None,
        )
