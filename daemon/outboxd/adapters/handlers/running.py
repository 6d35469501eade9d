"""Runs handlers: in which thread, in which transaction, with which mark."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import anyio

from outboxd.adapters.crew import Crew
from outboxd.adapters.handlers.batches import Batch, batch_of
from outboxd.adapters.handlers.calling import call_async, call_sync
from outboxd.adapters.handlers.invocation import Invocation, event_of, invocation_of_one
from outboxd.adapters.handlers.loading import LoadedHandler
from outboxd.adapters.handlers.own import judged_by_mark
from outboxd.adapters.handlers.publishing import Publish
from outboxd.adapters.postgres.bracketing import Bracketed
from outboxd.adapters.postgres.consumer_database import ConsumerDatabase
from outboxd.adapters.postgres.marks import DUPLICATE, BatchMarks, Mark
from outboxd.core.clock import boottime
from outboxd.core.errors import Unavailable
from outboxd.core.events import Event
from outboxd.core.judging import Away, Ending, Returned
from outboxd.core.outcomes import Done
from outboxd.ports.handling import BatchDone, BatchEnding, Call

T = TypeVar("T")

MARK_AGAIN_SECONDS = 1.0


class Runner:
    """Keeps `ports.handling.HandlerRunner` for the handlers of one queue.

    `publish` is what `context.publish` does within a transaction.
    """

    def __init__(
        self,
        handlers: Iterable[LoadedHandler],
        *,
        concurrency: int,
        database: ConsumerDatabase | None = None,
        publish: Publish | None = None,
    ) -> None:
        self._handlers = {handler.name: handler for handler in handlers}
        self._database = database
        self._publish = publish
        # Threads of handlers that a drain no longer waits for keep their places.
        self._crew = Crew(concurrency, "handler")

    def interruptible(self, handler: str) -> bool:
        return self._handlers[handler].signature.asynchronous

    async def run(self, handler: str, call: Call) -> Ending:
        loaded = self._handlers[handler]
        event = event_of(loaded, call)
        if not isinstance(event, Event):
            return event
        mark = Mark(event.id, handler)
        match loaded.settings.inbox:
            case "transaction":
                return await self._in_transaction(mark, invocation_of_one(loaded, call, event))
            case "after":
                return await self._then_mark(mark, call, invocation_of_one(loaded, call, event))
            case "own":
                return await self._in_its_own(mark, loaded, call, event)
            case "off":
                return await self._alone(invocation_of_one(loaded, call, event))

    async def run_batch(self, handler: str, calls: Sequence[Call]) -> BatchEnding:
        batch = batch_of(self._handlers[handler], calls)
        if not batch.events:
            return BatchDone(left_out=batch.left_out)
        if batch.handler.settings.inbox == "off":
            return batch.ending(await self._alone(batch.invocation(batch.events)), batch.events)
        # The rules between settings refuse batches with other inbox modes.
        assert batch.handler.settings.inbox == "transaction"
        result = await self._batch_in_transaction(batch)
        if result.left_over is not None:
            self._needed_database().inbox.left_over.add(handler, result.left_over.event_ids)
        called = {} if result.new is None else batch.firsts(result.new.event_ids)
        return batch.ending(result.ending, called)

    async def _alone(self, invocation: Invocation) -> Ending:
        if invocation.handler.signature.asynchronous:
            return await call_async(invocation)
        return await self._in_thread(lambda: call_sync(invocation))

    async def _in_transaction(self, mark: Mark, invocation: Invocation) -> Ending:
        database = self._needed_database()
        spoiled = database.inbox.left_over.take(mark.handler, mark.event_id)
        if spoiled is not None:
            return spoiled
        if invocation.handler.signature.asynchronous:
            return await database.async_transactions.run(
                mark.event_id,
                mark.handler,
                lambda tx: call_async(invocation, self._publish, tx),
            )
        return await self._in_thread(
            lambda: database.transactions.run(
                mark.event_id,
                mark.handler,
                lambda tx: call_sync(invocation, self._publish, tx),
            )
        )

    async def _batch_in_transaction(self, batch: Batch) -> Bracketed[BatchMarks]:
        database = self._needed_database()

        def invocation(new: BatchMarks) -> Invocation:
            return batch.invocation(batch.firsts(new.event_ids))

        if batch.handler.signature.asynchronous:
            return await database.async_batches.run(
                batch.event_ids,
                batch.handler.name,
                lambda tx, new: call_async(invocation(new), self._publish, tx),
            )
        return await self._in_thread(
            lambda: database.batches.run(
                batch.event_ids,
                batch.handler.name,
                lambda tx, new: call_sync(invocation(new), self._publish, tx),
            )
        )

    async def _then_mark(self, mark: Mark, call: Call, invocation: Invocation) -> Ending:
        inbox = self._needed_database().inbox
        try:
            if await inbox.done(mark):
                return DUPLICATE
        except Unavailable as error:
            return Away(str(error))
        ending = await self._alone(invocation)
        if isinstance(ending, Returned) and isinstance(ending.outcome, Done):
            return await self._mark(mark, call, ending)
        return ending

    async def _mark(self, mark: Mark, call: Call, ending: Ending) -> Ending:
        """The effect is there; without its mark it would be repeated, so this does not give up
        before the handler's own time is over."""
        inbox = self._needed_database().inbox
        while True:
            try:
                await inbox.mark(mark)
                return ending
            except Unavailable as error:
                if boottime() + MARK_AGAIN_SECONDS >= call.deadline:
                    return Away(str(error))
            await anyio.sleep(MARK_AGAIN_SECONDS)

    async def _in_its_own(
        self, mark: Mark, handler: LoadedHandler, call: Call, event: Event[Any]
    ) -> Ending:
        """The handler's transaction is over when it returns: whether with its mark is looked for on
        a connection of outboxd's. If that cannot be done nobody knows, and the next delivery's
        claim finds out."""
        database = self._needed_database()
        claiming = database.claims.claiming(mark)
        ending = await self._alone(invocation_of_one(handler, call, event, claiming.claim))
        try:
            marked = await database.inbox.done(mark)
        except Unavailable as error:
            return Away(str(error))
        return judged_by_mark(ending, claiming, marked)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await self._crew.run(work)

    def _needed_database(self) -> ConsumerDatabase:
        # Loading refuses the inbox modes that would come here without one.
        assert self._database is not None
        return self._database
