"""One call of one handler: whatever it raises or returns becomes an ending."""

import asyncio
import logging
import math
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from outboxd.adapters.handlers.invocation import Invocation
from outboxd.adapters.handlers.publishing import Publish, Publishing
from outboxd.adapters.postgres.claims import ClaimedElsewhere
from outboxd.core.judging import Ending, Raised, Returned, TimedOut, raised, said
from outboxd.core.log_facts import CALL_FACTS, Payload
from outboxd.core.outcomes import Done

log = logging.getLogger(__name__)


def call_sync(invocation: Invocation, publish: Publish | None = None, tx: Any = None) -> Ending:
    """Call a synchronous handler, in this thread."""
    handler = invocation.handler
    publishing = None if publish is None else Publishing(publish, tx, invocation.traceparent)
    publisher = None if publishing is None else publishing.now
    facts = CALL_FACTS.set(invocation.facts)
    try:
        value = handler.function(invocation.subject, **invocation.arguments(tx, publisher))
        if asyncio.iscoroutine(value):
            value.close()
        return said(value, handler.name)
    # SystemExit too: a handler fails, it does not decide about the process.
    except BaseException as error:
        return _failed(invocation, error)
    finally:
        CALL_FACTS.reset(facts)


async def call_async(
    invocation: Invocation, publish: Publish | None = None, tx: Any = None
) -> Ending:
    """Call an asynchronous handler, cancelling it when its time is over."""
    handler = invocation.handler
    publishing = None if publish is None else Publishing(publish, tx, invocation.traceparent)
    publisher = None if publishing is None else publishing.later
    arguments = invocation.arguments(tx, publisher)
    ending: Ending | None = None
    with anyio.move_on_after(handler.settings.timeout_seconds) as time:
        ending = await _guarded(invocation, arguments)
    if anyio.current_effective_deadline() == -math.inf:
        # The drain's deadline has passed: a handler that swallowed this has not succeeded.
        await anyio.lowlevel.checkpoint()
    # Not `cancelled_caught`: a handler may swallow the cancellation, half-way through its work.
    if time.cancel_called or ending is None:
        _log_failure(invocation, "timed out", None)
        return TimedOut(handler.settings.timeout_seconds)
    if publishing is not None and publishing.forgotten() and _is_done(ending):
        return Raised(f"handler {handler.name} did not await context.publish()")
    return ending


async def _guarded(invocation: Invocation, arguments: dict[str, Any]) -> Ending:
    handler = invocation.handler
    task = asyncio.current_task()
    assert task is not None
    cancellations = task.cancelling()
    facts = CALL_FACTS.set(invocation.facts)
    try:
        ending = said(await handler.function(invocation.subject, **arguments), handler.name)
    except asyncio.CancelledError as error:
        if anyio.current_effective_deadline() == -math.inf:
            raise  # its time is over, or the drain's
        ending = _failed(invocation, error)
    except BaseException as error:
        ending = _failed(invocation, error)
    finally:
        CALL_FACTS.reset(facts)
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


def _is_done(ending: Ending) -> bool:
    return isinstance(ending, Returned) and isinstance(ending.outcome, Done)


def _failed(invocation: Invocation, error: BaseException) -> Ending:
    ending = raised(error)
    if isinstance(ending, Raised):
        if ending.sqlstate is None:
            ending = msgspec.structs.replace(ending, sqlstate=_inner_sqlstate(error))
        if not isinstance(error, ClaimedElsewhere):  # nobody has failed
            _log_failure(invocation, ending.error, error)
    return ending


def _inner_sqlstate(error: BaseException) -> str | None:
    """PostgreSQL's code, of an error that SQLAlchemy or Django has wrapped."""
    cause = error.__cause__
    state = getattr(cause, "sqlstate", None)
    return state if isinstance(state, str) else None


def _log_failure(invocation: Invocation, text: str, error: BaseException | None) -> None:
    facts: dict[str, object] = {**invocation.facts(), "error": text}
    if invocation.payload is not None:
        facts["payload"] = Payload(invocation.payload)
    log.warning("handler failed", exc_info=error, extra=facts)
