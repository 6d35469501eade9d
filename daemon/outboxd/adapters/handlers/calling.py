"""One call of one handler: whatever it raises or returns becomes an ending."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
import msgspec

from outboxd.adapters.handlers.loading import LoadedHandler
from outboxd.core.events import Event, NewEvent
from outboxd.core.judging import Ending, Raised, Returned, TimedOut, describe, raised, said
from outboxd.core.outcomes import DeadLetter, DeadReason, Done
from outboxd.ports.handling import Call, Context, Publisher

log = logging.getLogger(__name__)

Publish: TypeAlias = Callable[[Any, NewEvent], Any]
"""`outboxd.publish`: stores an event through a connection; awaitable if the connection is."""


class Publishing:
    """Publishes within one transaction, and remembers what nobody has awaited."""

    def __init__(self, publish: Publish, tx: Any) -> None:
        self._publish = publish
        self._tx = tx
        self._unawaited = 0

    def now(self, event: NewEvent) -> Awaitable[None]:
        """For a synchronous handler: done on return; awaiting it is allowed."""
        self._publish(self._tx, event)
        return _Awaited()

    def later(self, event: NewEvent) -> Awaitable[None]:
        """For an asynchronous handler: done when awaited."""
        self._unawaited += 1
        return _Pending(self, event)

    async def carry_out(self, event: NewEvent) -> None:
        """What awaiting does."""
        self._unawaited -= 1
        await self._publish(self._tx, event)

    def forgotten(self) -> bool:
        """Whether an event was handed over and never awaited, so that it would be lost."""
        return self._unawaited > 0


class _Awaited(Awaitable[None]):
    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class _Pending(Awaitable[None]):
    # No coroutine: one that is never awaited would warn only when it is collected.
    def __init__(self, publishing: Publishing, event: NewEvent) -> None:
        self._publishing = publishing
        self._event = event

    def __await__(self) -> Generator[Any, None, None]:
        return self._publishing.carry_out(self._event).__await__()


def event_of(handler: LoadedHandler, call: Call) -> Event[Any] | Ending:
    """The event with the payload that the handler expects, or why it has another."""
    incoming = call.incoming
    try:
        payload = handler.decoder.decode(incoming.payload)
    # ValidationError and DecodeError, but a payload may also nest too deep, and a type's own
    # __post_init__ may raise anything.
    except Exception as error:
        text = describe(error) if not isinstance(error, msgspec.MsgspecError) else str(error)
        return Returned(DeadLetter(DeadReason.INVALID_PAYLOAD, text))
    return Event(
        id=incoming.id,
        type=incoming.type,
        aggregate_type=incoming.aggregate_type,
        aggregate_id=incoming.aggregate_id,
        occurred_at=incoming.occurred_at,
        payload=payload,
    )


def call_sync(
    handler: LoadedHandler, call: Call, event: Event[Any], publish: Publish | None, tx: Any
) -> Ending:
    """Call a synchronous handler, in this thread."""
    publishing = None if publish is None else Publishing(publish, tx)
    publisher = None if publishing is None else publishing.now
    try:
        value = handler.function(event, **_arguments(handler, call, tx, publisher))
        if asyncio.iscoroutine(value):
            value.close()
        return said(value, handler.name)
    # SystemExit too: a handler fails, it does not decide about the process.
    except BaseException as error:
        return _failed(handler, call, error)


async def call_async(
    handler: LoadedHandler, call: Call, event: Event[Any], publish: Publish | None, tx: Any
) -> Ending:
    """Call an asynchronous handler, cancelling it when its time is over."""
    publishing = None if publish is None else Publishing(publish, tx)
    publisher = None if publishing is None else publishing.later
    arguments = _arguments(handler, call, tx, publisher)
    ending: Ending | None = None
    with anyio.move_on_after(handler.settings.timeout_seconds) as time:
        ending = await _guarded(handler, call, event, arguments)
    if anyio.current_effective_deadline() == -math.inf:
        # The drain's deadline has passed: a handler that swallowed this has not succeeded.
        await anyio.lowlevel.checkpoint()
    # Not `cancelled_caught`: a handler may swallow the cancellation, half-way through its work.
    if time.cancel_called or ending is None:
        _log_failure(handler, call, "timed out", None)
        return TimedOut(handler.settings.timeout_seconds)
    if publishing is not None and publishing.forgotten() and _is_done(ending):
        return Raised(f"handler {handler.name} did not await context.publish()")
    return ending


async def _guarded(
    handler: LoadedHandler, call: Call, event: Event[Any], arguments: dict[str, Any]
) -> Ending:
    task = asyncio.current_task()
    assert task is not None
    cancellations = task.cancelling()
    try:
        ending = said(await handler.function(event, **arguments), handler.name)
    except asyncio.CancelledError as error:
        if anyio.current_effective_deadline() == -math.inf:
            raise  # its time is over, or the drain's
        ending = _failed(handler, call, error)
    except BaseException as error:
        ending = _failed(handler, call, error)
    if task.cancelling() > cancellations and anyio.current_effective_deadline() > -math.inf:
        await _absorb(task, cancellations)
        return Raised(f"handler {handler.name} cancelled its own task")
    return ending


async def _absorb(task: "asyncio.Task[Any]", cancellations: int) -> None:
    """Take back a cancellation by the handler itself: it would end the worker that called it."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # until Python 3.13 `uncancel` leaves the exception pending
    while task.cancelling() > cancellations:
        task.uncancel()


def _arguments(
    handler: LoadedHandler, call: Call, tx: Any, publisher: Publisher | None
) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if handler.signature.wants_tx:
        arguments["tx"] = tx
    if handler.signature.wants_context:
        arguments["context"] = Context(handler.name, call, publisher)
    return arguments


def _is_done(ending: Ending) -> bool:
    return isinstance(ending, Returned) and isinstance(ending.outcome, Done)


def _failed(handler: LoadedHandler, call: Call, error: BaseException) -> Ending:
    ending = raised(error)
    if isinstance(ending, Raised):
        _log_failure(handler, call, ending.error, error)
    return ending


def _log_failure(
    handler: LoadedHandler, call: Call, text: str, error: BaseException | None
) -> None:
    log.warning(
        "handler failed",
        exc_info=error,
        extra={
            "handler": handler.name,
            "queue": call.queue,
            "event_id": str(call.incoming.id),
            "attempt": call.attempt,
            "error": text,
        },
    )
