"""What a test gives, handler and events, as the daemon would have it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

import msgspec
from prometheus_client import CollectorRegistry

from outboxd.adapters.handlers.inspection import Unfit, inspect_handler
from outboxd.adapters.handlers.loading import LoadedHandler
from outboxd.adapters.metrics.user import PoolUserMetrics
from outboxd.core.errors import PublishRefused, SettingsError
from outboxd.core.events import Event, NewEvent
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import body_of
from outboxd.core.settings import HandlerSettings, InboxMode

Given: TypeAlias = Event[Any] | NewEvent
"""An event as a test writes it down."""

QUEUE = "test"
"""What `context.queue` tells."""


def listed(given: Given | Sequence[Given]) -> tuple[Sequence[Given], int]:
    """The events, and the `batch` that the handler is configured with: a list makes one, even of a
    single event. Raises ValueError for an empty list, which the daemon never hands over."""
    if isinstance(given, Event | NewEvent):
        return [given], 1
    if not given:
        raise ValueError("a batch has one event or more, and this list is empty")
    return given, max(2, len(given))


def loaded(
    handler: Callable[..., Any],
    options: Mapping[str, Any] | None,
    timeout_seconds: float,
    name: str | None,
    inbox: InboxMode,
    batch: int,
) -> LoadedHandler:
    """The handler as the daemon would load it. Raises SettingsError."""
    where = _place(handler)
    try:
        function = _constructed(handler, options)
        signature = inspect_handler(function, inbox, batch)
    except Unfit as error:
        raise SettingsError([f"handler {where} {error}"]) from error
    settings = HandlerSettings(
        event="*",
        handler=where,
        name=name or where,
        timeout_seconds=timeout_seconds,
        inbox=inbox,
        batch=batch,
    )
    # What would be refused is raised here, so that a test finds it.
    metrics = PoolUserMetrics(CollectorRegistry(), QUEUE, strict=True)
    return LoadedHandler(settings, function, signature, metrics)


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


def body(event: Given) -> str:
    """The message's body as the relay would write it. Raises PublishRefused."""
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


def message(text: str) -> ReceivedMessage:
    """The message as it would be received for the first time."""
    now = datetime.now(UTC).timestamp()
    return ReceivedMessage(
        message_id=QUEUE, receipt_handle=QUEUE, receive_count=1, sent_at=now, body=text
    )
