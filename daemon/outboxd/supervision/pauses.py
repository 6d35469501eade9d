"""Which queues an operator has paused: told to their pools, now and whenever one starts."""

import logging
from collections.abc import Callable, Sequence

from outboxd.core.clock import boottime
from outboxd.core.errors import OutboxdError
from outboxd.supervision.observing import SupervisorObserver
from outboxd.supervision.switchboard import Switchboard

log = logging.getLogger(__name__)


class UnknownQueue(OutboxdError):
    """No pool of this daemon consumes a queue of that name."""


class Pauses:
    """A paused pool finishes what it has, receives nothing, and is ready all the same: that is what
    was asked of it. A pause lasts until it is taken back or the daemon ends."""

    def __init__(
        self,
        queues: Callable[[], Sequence[str]],
        switchboard: Switchboard,
        observer: SupervisorObserver,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self._queues = queues
        self._switchboard = switchboard
        self._observer = observer
        self._clock = clock
        self._paused: set[str] = set()
        self._resumed_at: dict[str, float] = {}

    def pause(self, queue: str) -> None:
        """Stop receiving from the queue; once more changes nothing. Raises UnknownQueue."""
        self._require(queue)
        if queue not in self._paused:
            log.warning("queue paused", extra={"queue": queue})
        self._paused.add(queue)
        self._switchboard.pause(queue)
        self._observer.queue_paused(queue, True)

    def resume(self, queue: str) -> None:
        """Receive from the queue again; once more changes nothing. Raises UnknownQueue."""
        self._require(queue)
        if queue in self._paused:
            log.warning("queue resumed", extra={"queue": queue})
            self._resumed_at[queue] = self._clock()
        self._paused.discard(queue)
        self._switchboard.resume(queue)
        self._observer.queue_paused(queue, False)

    def paused(self, queue: str) -> bool:
        """Whether the queue is paused now."""
        return queue in self._paused

    def resumed_at(self, queue: str) -> float:
        """When the last pause was taken back, by the clock; 0 if there was none. The silence before
        it was wanted."""
        return self._resumed_at.get(queue, 0.0)

    def forget_strangers(self) -> None:
        """Queues that this daemon no longer consumes are not paused any more, nor when they come
        back: whoever takes a queue out of the configuration does not mean to pause it."""
        for queue in self._paused - set(self._queues()):
            self._paused.discard(queue)
            self._switchboard.resume(queue)
            self._observer.queue_paused(queue, False)

    def _require(self, queue: str) -> None:
        queues = self._queues()
        if queue not in queues:
            known = ", ".join(queues) or "none"
            raise UnknownQueue(
                f'no pool of this daemon consumes the queue "{queue}"; it has {known}'
            )
