"""Calls handlers, keeps the heartbeat's picture of what runs, and knows what is over its time."""

from collections.abc import Sequence

import msgspec

from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.core.judging import Ending, Returned
from outboxd.core.outcomes import Done
from outboxd.core.settings import HandlerSettings
from outboxd.ports.handling import BatchDone, BatchEnding, Call, HandlerRunner


class Started(msgspec.Struct, frozen=True):
    """One call of a handler that is in progress, with one message or with a batch."""

    handler: HandlerSettings
    items: Sequence[Item]
    attempt: int
    started_at: float
    interruptible: bool

    @property
    def deadline(self) -> float:
        return self.started_at + self.handler.timeout_seconds


class Running:
    """Knows the calls that are in progress, oldest first."""

    def __init__(self, pool: Pool, runner: HandlerRunner) -> None:
        self._pool = pool
        self._runner = runner
        self._started: dict[int, Started] = {}

    async def run(self, item: Item, handler: HandlerSettings, attempt: int) -> Ending:
        """Call the handler and return how that ended."""
        started = self._begin(handler, [item], attempt)
        ok = False
        try:
            ending = await self._runner.run(handler.name, self._call(item, started))
            ok = isinstance(ending, Returned) and isinstance(ending.outcome, Done)
            self._thread_ended(started)
            return ending
        finally:
            self._end(started, ok)

    async def run_batch(self, items: Sequence[Item], handler: HandlerSettings) -> BatchEnding:
        """Call the handler with all of these at once."""
        started = self._begin(handler, items, 1)
        ok = False
        try:
            calls = [self._call(item, started) for item in items]
            ending = await self._runner.run_batch(handler.name, calls)
            ok = isinstance(ending, BatchDone)
            self._thread_ended(started)
            return ending
        finally:
            self._end(started, ok)

    def overdue(self) -> list[Started]:
        """The calls that are over their time and cannot be interrupted."""
        now = self._pool.clock()
        return [s for s in self._started.values() if not s.interruptible and now >= s.deadline]

    def _call(self, item: Item, started: Started) -> Call:
        assert item.incoming is not None
        return Call(item.incoming, self._pool.name, started.attempt, started.deadline)

    def _begin(self, handler: HandlerSettings, items: Sequence[Item], attempt: int) -> Started:
        interruptible = self._runner.interruptible(handler.name)
        started = Started(handler, items, attempt, self._pool.clock(), interruptible)
        for item in items:
            item.in_thread = not interruptible
        self._started[id(started)] = started
        self._show()
        self._pool.observer.started(handler.name)
        return started

    def _thread_ended(self, started: Started) -> None:
        # Not in `finally`: a drain's deadline ends this wait, and the thread goes on.
        for item in started.items:
            item.in_thread = False

    def _end(self, started: Started, ok: bool) -> None:
        del self._started[id(started)]
        self._show()
        seconds = self._pool.clock() - started.started_at
        self._pool.observer.finished(started.handler.name, seconds, ok)

    def _show(self) -> None:
        started = self._started.values()
        # Insertion order is the order of starting.
        oldest = next(iter(started), None)
        self._pool.progress.oldest_started_at = None if oldest is None else oldest.started_at
