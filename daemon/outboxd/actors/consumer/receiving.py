"""Receives as many messages as there are free slots, and as may be received."""

import logging

import anyio

from outboxd.actors.consumer.arrival import Arrivals
from outboxd.actors.consumer.pool import Pool
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.rate import Rate
from outboxd.pacing import pause
from outboxd.ports.queue import BATCH, Queue

log = logging.getLogger(__name__)

_FATAL = (OutageKind.MISSING, OutageKind.DENIED, OutageKind.CREDENTIALS)
"""What no waiting cures; still it is only tried less often, since a person may."""


class Receiver:
    """Never has more messages in hand than there are slots, and leaves none behind when it ends."""

    def __init__(self, pool: Pool, queue: Queue, arrivals: Arrivals, processes: int) -> None:
        self._pool = pool
        self._queue = queue
        self._arrivals = arrivals
        self._failures = 0
        most = pool.settings.max_per_second
        self._rate = None if most is None else Rate(most / processes, pool.clock())
        self.first_poll = anyio.Event()
        """Set once a receive is on its way, or somebody else is to be waited for."""
        self.asking = False
        """Whether a receive is on its way."""

    async def run(self) -> None:
        """Receive until stopping; the receive in flight then is joined, not thrown away."""
        while await self._wait_for_room():
            await self._wait_for_company()
            await self._wait_for_rate()
            if room := min(self._room(), self._allowed()):
                await self._receive(room)

    def _room(self) -> int:
        """How many messages there is room for now."""
        if self._pool.stopping.is_set() or not self._pool.gates.open:
            return 0
        return self._pool.hand.room()

    def _allowed(self) -> int:
        """How many messages may be received now."""
        return BATCH if self._rate is None else self._rate.available(self._pool.clock())

    async def _wait_for_rate(self) -> None:
        if self._rate is not None:
            await pause(self._pool.stopping, self._rate.seconds_until_one(self._pool.clock()))

    async def _wait_for_room(self) -> bool:
        """Return once there is room for a message; False when stopping."""
        while not self._pool.stopping.is_set():
            if self._room():
                return True
            if not self._pool.gates.open:
                self.first_poll.set()  # it waits for somebody else: that is as ready as it gets
            await self._pool.change.until(self._has_news)
        return False

    def _has_news(self) -> bool:
        shut_out = not (self._pool.gates.open or self.first_poll.is_set())
        return self._pool.stopping.is_set() or self._room() > 0 or shut_out

    async def _wait_for_company(self) -> None:
        """Give a slot that has just become free a moment to be joined by others.

        SQS bills by the call, and each call costs a Hold as well: receiving for every single slot
        took four times as many receives.
        """
        enough = min(BATCH, self._pool.settings.concurrency)
        with anyio.move_on_after(self._pool.timing.gather_seconds):
            await self._pool.change.until(lambda: not 0 < self._room() < enough)

    async def _receive(self, room: int) -> None:
        received_at = self._pool.clock()
        self.first_poll.set()
        settings = self._pool.settings
        limit, wait = self._pool.failed_heads.plan(received_at, room, settings.wait_seconds)
        self.asking = True
        try:
            messages = await self._queue.receive(limit, wait)
        except Unavailable as error:
            await self._endure(error)
            return
        finally:
            self.asking = False
        self._failures = 0
        self._pool.progress.last_receive_at = self._pool.clock()
        self._pool.observer.received(len(messages), sum(m.receive_count > 1 for m in messages))
        if messages:
            self._take_from_rate(len(messages))
            await self._arrivals.take_in(messages, received_at)
        elif not wait:
            await pause(self._pool.stopping, self._pool.timing.short_poll_seconds)

    def _take_from_rate(self, count: int) -> None:
        if self._rate is not None:
            self._rate.take(count, self._pool.clock())

    async def _endure(self, error: Unavailable) -> None:
        self._failures += 1
        self._pool.observer.receive_failed(error.kind)
        fatal = error.kind in _FATAL
        log.log(
            logging.ERROR if fatal else logging.WARNING,
            "receive failed and is tried again",
            extra={"queue": self._pool.name, "kind": error.kind.value, "error": str(error)},
        )
        backoff = self._pool.timing.fatal_backoff if fatal else self._pool.timing.receive_backoff
        await pause(self._pool.stopping, backoff.delay(self._failures, self._pool.dice))
