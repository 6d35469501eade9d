"""One call of a handler, with everything around it that the daemon would see to."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec
from anyio import to_thread

from outboxd.adapters.handlers.calling import Publish, call_async, call_sync, event_of
from outboxd.adapters.handlers.inspection import Unfit, inspect_handler
from outboxd.adapters.handlers.loading import LoadedHandler
from outboxd.core.clock import boottime
from outboxd.core.envelopes import Malformed, open_envelope
from outboxd.core.errors import PublishRefused, SettingsError
from outboxd.core.events import Event, NewEvent
from outboxd.core.judging import Ending, Patience, Returned, clean, judge, spent
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outbox import StoredEvent
from outboxd.core.outcomes import DeadLetter, DeadReason, Outcome
from outboxd.core.outgoing import body_of
from outboxd.core.retry import Backoff
from outboxd.core.settings import HandlerSettings
from outboxd.ports.handling import Call
from outboxd.producer import publish
from outboxd.testing.transactions import check_tx, within, within_async

QUEUE = "test"
"""What `context.queue` tells."""


class Trial:
    """The `attempt`-th call of this handler with this event. Raises as `handling.run` does."""

    def __init__(
        self,
        handler: Callable[..., Any],
        event: Event[Any] | NewEvent,
        tx: Any,
        options: Mapping[str, Any] | None,
        attempt: int,
        max_attempts: int,
        timeout_seconds: float,
        name: str | None,
        schema: str,
    ) -> None:
        self._handler = _loaded(handler, options, timeout_seconds, name)
        check_tx(self._handler, tx)
        self._tx = tx
        self._publish: Publish | None = None if tx is None else partial(publish, schema=schema)
        self._body = _body(event)
        self._attempt = attempt
        self._patience = Patience(max_attempts, Backoff())

    @property
    def asynchronous(self) -> bool:
        return self._handler.signature.asynchronous

    def run(self) -> Outcome:
        """Call a synchronous handler, in this thread."""
        prepared = self._prepared()
        if not isinstance(prepared, _Prepared):
            return self._judged(prepared)
        call, event = prepared
        return self._judged(
            within(
                self._tx,
                self._handler.name,
                lambda: call_sync(self._handler, call, event, self._publish, self._tx),
            )
        )

    async def run_async(self) -> Outcome:
        """Call any handler, a synchronous one in a thread."""
        if not self.asynchronous:
            return await to_thread.run_sync(self.run)
        prepared = self._prepared()
        if not isinstance(prepared, _Prepared):
            return self._judged(prepared)
        call, event = prepared
        return self._judged(
            await within_async(
                self._tx,
                self._handler.name,
                lambda: call_async(self._handler, call, event, self._publish, self._tx),
            )
        )

    def _prepared(self) -> "_Prepared | Ending":
        """The event as the handler is to see it, or why it is not called."""
        try:
            incoming = open_envelope(_message(self._body))
        except Malformed as error:
            return Returned(DeadLetter(DeadReason.MALFORMED, clean(str(error))))
        deadline = boottime() + self._handler.settings.timeout_seconds
        call = Call(incoming, QUEUE, self._attempt, deadline)
        event = event_of(self._handler, call)
        return _Prepared(call, event) if isinstance(event, Event) else event

    def _judged(self, ending: Ending) -> Outcome:
        failures = self._attempt if spent(ending) is not None else self._attempt - 1
        return judge(ending, failures, self._patience, dice=_longest).outcome


class _Prepared(NamedTuple):
    call: Call
    event: Event[Any]


def _longest() -> float:
    """No chance: a delay that a test can compare."""
    return 0.0


def _loaded(
    handler: Callable[..., Any],
    options: Mapping[str, Any] | None,
    timeout_seconds: float,
    name: str | None,
) -> LoadedHandler:
    where = _place(handler)
    try:
        function = _constructed(handler, options)
        # The mode that allows most; whether there is a transaction is for `check_tx`.
        signature = inspect_handler(function, "transaction")
    except Unfit as error:
        raise SettingsError([f"handler {where} {error}"]) from error
    settings = HandlerSettings(
        event="*", handler=where, name=name or where, timeout_seconds=timeout_seconds
    )
    return LoadedHandler(settings, function, signature)


def _place(handler: object) -> str:
    """Where a handler is written, as a configuration would name it; of an object, its class."""
    named = handler if hasattr(handler, "__qualname__") else type(handler)
    return f"{named.__module__}:{named.__qualname__}"


def _constructed(
    handler: Callable[..., Any], options: Mapping[str, Any] | None
) -> Callable[..., Any]:
    if isinstance(handler, type):
        try:
            made: Any = handler(**(options or {}))
        except Exception as error:
            raise Unfit(
                f"could not be constructed with its `options`: {type(error).__name__}: {error}"
            ) from error
        if not callable(made):
            raise Unfit("is a class without a `__call__` method, so its object cannot be called")
        return cast("Callable[..., Any]", made)
    if not callable(handler):
        raise Unfit(f"is a {type(handler).__name__}, which cannot be called")
    if options:
        raise Unfit("is no class, and `options` are for the constructor of a class")
    return handler


def _body(event: Event[Any] | NewEvent) -> str:
    """The message's body as the relay would write it."""
    try:
        payload = msgspec.json.encode(event.payload).decode()
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise PublishRefused(f"payload is not encodable as JSON: {error}") from error
    occurred_at = event.occurred_at if isinstance(event, Event) else datetime.now(UTC)
    stored = StoredEvent(
        key=0,
        seq=0,
        id=str(event.id),
        event_type=event.type,
        aggregate_type=event.aggregate_type,
        aggregate_id=event.aggregate_id,
        payload=payload,
        traceparent=None,
        occurred_at=occurred_at.isoformat(),
        born_at=0.0,
        attempts=0,
        due_at=0.0,
        delivered_to=None,
    )
    return body_of(stored, "event")


def _message(body: str) -> ReceivedMessage:
    now = datetime.now(UTC).timestamp()
    return ReceivedMessage(
        message_id=QUEUE, receipt_handle=QUEUE, receive_count=1, sent_at=now, body=body
    )
