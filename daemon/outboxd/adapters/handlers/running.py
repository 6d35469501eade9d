"""Runs handlers: in which thread, in which transaction, with which mark."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread

from outboxd.adapters.handlers.calling import Publish, call_async, call_sync, event_of
from outboxd.adapters.handlers.loading import LoadedHandler
from outboxd.adapters.postgres.consumer_database import ConsumerDatabase
from outboxd.adapters.postgres.marks import DUPLICATE, Mark
from outboxd.core.clock import boottime
from outboxd.core.errors import Unavailable
from outboxd.core.events import Event
from outboxd.core.judging import Away, Ending, Returned
from outboxd.core.outcomes import Done
from outboxd.ports.handling import Call

log = logging.getLogger(__name__)

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
        self._threads = CapacityLimiter(concurrency)

    def interruptible(self, handler: str) -> bool:
        return self._handlers[handler].signature.asynchronous

    async def run(self, handler: str, call: Call) -> Ending:
        loaded = self._handlers[handler]
        event = event_of(loaded, call)
        if not isinstance(event, Event):
            return event
        match loaded.settings.inbox:
            case "transaction":
                return await self._in_transaction(loaded, call, event)
            case "after":
                return await self._then_mark(loaded, call, event)
            case "off":
                return await self._alone(loaded, call, event)

    async def _alone(self, handler: LoadedHandler, call: Call, event: Event[Any]) -> Ending:
        if handler.signature.asynchronous:
            return await call_async(handler, call, event, None, None)
        return await self._in_thread(
            handler, call, lambda: call_sync(handler, call, event, None, None)
        )

    async def _in_transaction(
        self, handler: LoadedHandler, call: Call, event: Event[Any]
    ) -> Ending:
        database = self._needed_database()
        if handler.signature.asynchronous:
            return await database.async_transactions.run(
                event.id,
                handler.name,
                lambda tx: call_async(handler, call, event, self._publish, tx),
            )
        return await self._in_thread(
            handler,
            call,
            lambda: database.transactions.run(
                event.id,
                handler.name,
                lambda tx: call_sync(handler, call, event, self._publish, tx),
            ),
        )

    async def _then_mark(self, handler: LoadedHandler, call: Call, event: Event[Any]) -> Ending:
        inbox = self._needed_database().inbox
        mark = Mark(event.id, handler.name)
        try:
            if await inbox.done(mark):
                return DUPLICATE
        except Unavailable as error:
            return Away(str(error))
        ending = await self._alone(handler, call, event)
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

    async def _in_thread(
        self, handler: LoadedHandler, call: Call, work: Callable[[], Ending]
    ) -> Ending:
        overrun = asyncio.get_running_loop().call_later(
            handler.settings.timeout_seconds, self._overrun, handler, call
        )
        try:
            return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)
        finally:
            overrun.cancel()

    def _overrun(self, handler: LoadedHandler, call: Call) -> None:
        """A thread cannot be ended, only its process; until then its lease runs out."""
        log.error(
            "handler exceeds its timeout and cannot be interrupted",
            extra={
                "handler": handler.name,
                "queue": call.queue,
                "event_id": str(call.incoming.id),
                "timeout_seconds": handler.settings.timeout_seconds,
            },
        )

    def _needed_database(self) -> ConsumerDatabase:
        # Loading refuses the inbox modes that would come here without one.
        assert self._database is not None
        return self._database
