"""Calls one handler, and keeps the heartbeat's picture of what runs."""

from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.core.envelopes import Incoming
from outboxd.core.judging import Ending, Returned
from outboxd.core.outcomes import Done
from outboxd.core.settings import HandlerSettings
from outboxd.ports.handling import Call, HandlerRunner


class Running:
    """Knows the calls that are in progress, oldest first."""

    def __init__(self, pool: Pool, runner: HandlerRunner) -> None:
        self._pool = pool
        self._runner = runner
        self._started: dict[int, float] = {}

    async def run(
        self, item: Item, incoming: Incoming, handler: HandlerSettings, attempt: int
    ) -> Ending:
        """Call the handler and return how that ended."""
        started_at = self._pool.clock()
        call = Call(incoming, self._pool.name, attempt, started_at + handler.timeout_seconds)
        self._begin(item, handler.name, started_at)
        ok = False
        try:
            ending = await self._runner.run(handler.name, call)
            ok = isinstance(ending, Returned) and isinstance(ending.outcome, Done)
            # Not in `finally`: a drain's deadline ends this wait, and the thread goes on.
            item.in_thread = False
            return ending
        finally:
            self._end(item, handler.name, self._pool.clock() - started_at, ok)

    def _begin(self, item: Item, handler: str, now: float) -> None:
        item.in_thread = not self._runner.interruptible(handler)
        self._started[item.lease.token] = now
        self._show()
        self._pool.observer.started(handler)

    def _end(self, item: Item, handler: str, seconds: float, ok: bool) -> None:
        del self._started[item.lease.token]
        self._show()
        self._pool.observer.finished(handler, seconds, ok)

    def _show(self) -> None:
        self._pool.progress.in_flight = len(self._started)
        # Insertion order is the order of starting.
        self._pool.progress.oldest_started_at = next(iter(self._started.values()), None)
