"""Messages for a handler that takes them by the batch: gathered, then run together."""

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

import anyio

from outboxd.actors.consumer.gates import Change
from outboxd.actors.consumer.hand import Item, Stage
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.running import Running
from outboxd.actors.consumer.settling import Settler
from outboxd.actors.consumer.verdicts import Verdicts
from outboxd.core.errors import Unavailable
from outboxd.core.judging import Away, Busy, Ending, Returned
from outboxd.core.outcomes import Done
from outboxd.core.settings import HandlerSettings
from outboxd.ports.handling import BatchDone, BatchEnding, BatchFailed
from outboxd.ports.inbox import Inbox

log = logging.getLogger(__name__)


class Batch:
    """Messages for one handler, the oldest first; it is run when it is full, or at `due_at`."""

    def __init__(self, handler: HandlerSettings, due_at: float) -> None:
        self.handler = handler
        self.due_at = due_at
        self.items: list[Item] = []

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    @property
    def full(self) -> bool:
        return len(self.items) >= self.handler.batch


class Gathering:
    """The batches that are not full yet, one for each handler."""

    def __init__(self, pool: Pool, run: Callable[[Batch], None]) -> None:
        self._pool = pool
        self._run = run
        self._open: dict[str, Batch] = {}
        self._begun = Change()

    def join(self, item: Item, handler: HandlerSettings) -> None:
        """Put the message into the handler's batch, which is run if that has filled it."""
        batch = self._open.get(handler.name)
        if batch is None:
            due_at = self._pool.clock() + handler.batch_wait_seconds
            batch = self._open[handler.name] = Batch(handler, due_at)
            self._begun.notify()
        batch.items.append(item)
        if batch.full:
            self._run(self._open.pop(handler.name))

    def take_all(self) -> list[Item]:
        """Everything that waits for company, which it then no longer does."""
        items = [item for batch in self._open.values() for item in batch]
        self._open.clear()
        return items

    async def run_due(self) -> None:
        """Run batches whose time has come, full or not, for ever."""
        while True:
            await self._rest(self._soonest())
            now = self._pool.clock()
            for name in [name for name, batch in self._open.items() if batch.due_at <= now]:
                self._run(self._open.pop(name))

    async def _rest(self, soonest: float) -> None:
        """Until that time, or until there is a batch that is due before it."""
        with anyio.move_on_after(max(0.0, soonest - self._pool.clock())):
            await self._begun.until(lambda: self._soonest() < soonest)

    def _soonest(self) -> float:
        return min((batch.due_at for batch in self._open.values()), default=math.inf)


class BatchServer:
    """Runs a batch as a whole; when that fails each of its messages runs alone.

    Only then are attempts counted: whose fault it was is not known before.
    """

    def __init__(
        self,
        pool: Pool,
        running: Running,
        inbox: Inbox,
        settler: Settler,
        verdicts: Verdicts,
        run_alone: Callable[[Item], None],
    ) -> None:
        self._pool = pool
        self._running = running
        self._inbox = inbox
        self._settler = settler
        self._verdicts = verdicts
        self._run_alone = run_alone

    async def serve(self, batch: Batch) -> None:
        """Bring every message of the batch to its end, or to a run of its own."""
        if self._pool.stopping.is_set():
            self._settler.release(batch.items)
            return
        try:
            await self._serve(batch)
        # The same fence as around a single message: a bug of ours must not end the pool.
        except Exception:
            facts = {"queue": self._pool.name, "handler": batch.handler.name}
            log.exception("batch not processed; this is a bug in outboxd", extra=facts)
            for item in batch:
                if item.stage is Stage.ACTIVE:
                    self._run_alone(item)

    async def _serve(self, batch: Batch) -> None:
        try:
            together = await self._untried(batch)
        except Unavailable as error:
            for item in batch:
                self._settler.submit(item, self._verdicts.postpone(item, error))
            return
        if together:
            ending = await self._running.run_batch(together, batch.handler)
            await self._conclude(together, batch.handler, ending)

    async def _untried(self, batch: Batch) -> Sequence[Item]:
        """Those that have not failed before; the others have to run alone. Raises Unavailable."""
        again = [item for item in batch if item.message.receive_count > 1]
        tried = await self._tried(batch.handler, again) if again else frozenset()
        together: list[Item] = []
        for item in batch:
            if item.lost or item.lease.token in tried:
                self._run_alone(item)
            else:
                together.append(item)
        return together

    async def _tried(self, handler: HandlerSettings, items: Iterable[Item]) -> frozenset[int]:
        known = [(item, item.incoming) for item in items if item.incoming is not None]
        deliveries = [(incoming.id, item.message) for item, incoming in known]
        events = await self._inbox.tried(handler.name, deliveries)
        return frozenset(item.lease.token for item, incoming in known if incoming.id in events)

    async def _conclude(
        self, items: Sequence[Item], handler: HandlerSettings, ending: BatchEnding
    ) -> None:
        match ending:
            case BatchDone(duplicates=duplicates, left_out=left_out):
                for position, item in enumerate(items):
                    if position in left_out:
                        self._run_alone(item)
                    else:
                        done = Returned(Done(duplicate=position in duplicates))
                        await self._end(item, handler, done)
            case BatchFailed():
                for item in items:
                    self._run_alone(item)
            case Busy() | Away():
                for item in items:
                    await self._end(item, handler, ending)
            case _:
                assert_never(ending)

    async def _end(self, item: Item, handler: HandlerSettings, ending: Ending) -> None:
        result = await self._verdicts.judge(item, handler, 0, ending)
        self._settler.submit(item, self._verdicts.action(item, [result]))
