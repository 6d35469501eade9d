"""The chain: envelope by envelope, until there is an event."""

from datetime import UTC, datetime
from typing import assert_never

import msgspec

from outboxd.core.envelopes.cloudevents import open_cloudevents
from outboxd.core.envelopes.eventbridge import open_eventbridge
from outboxd.core.envelopes.incoming import Incoming, Malformed, Road, Step, Wrapped
from outboxd.core.envelopes.outline import outline_of
from outboxd.core.envelopes.plain import open_plain
from outboxd.core.envelopes.sns import open_sns
from outboxd.core.envelopes.tracing import first_traceparent, traceparent_of_x_ray
from outboxd.core.messages import ReceivedMessage

MAX_UNWRAPPINGS = 3
"""Two are what AWS makes (EventBridge to SNS to SQS); the bound is against bodies made to hurt."""

_STEPS: tuple[Step, ...] = (open_sns, open_eventbridge, open_cloudevents)


def open_envelope(message: ReceivedMessage) -> Incoming:
    """The event in a message's body. Raises Malformed, and nothing else, if there is none."""
    around: list[str] = []
    try:
        return _with_trace(_open(message, around), message)
    # Whatever a body can do to a decoder, RecursionError for one, it may do to itself alone.
    except Exception as error:
        place = f" (in {', in '.join(reversed(around))})" if around else ""
        raise Malformed(_reason(error) + place) from error


def _open(message: ReceivedMessage, around: list[str]) -> Incoming:
    """Notes in `around` which envelopes it has taken off, the outermost first."""
    text: str | msgspec.Raw = message.body
    road = Road(datetime.fromtimestamp(message.sent_at, UTC), _traceparent(message))
    while True:
        match _open_one(text, road):
            case Incoming() as incoming:
                return incoming
            case Wrapped() as wrapped if len(around) == MAX_UNWRAPPINGS:
                raise Malformed(f"{wrapped.name} in {MAX_UNWRAPPINGS} others: that is too deep")
            case Wrapped(name=name, text=text, traceparent=traceparent):
                around.append(name)
                road = Road(road.sent_at, traceparent)
            case never:
                assert_never(never)


def _open_one(text: str | msgspec.Raw, road: Road) -> Incoming | Wrapped:
    complaint = "no event"
    # Plain comes first since nearly every message is; the others lack its `payload`.
    try:
        plain = open_plain(text, road)
        if plain is not None:
            return plain
    except msgspec.ValidationError as error:
        complaint = str(error)
    outline = outline_of(text)
    if outline is not None:
        for step in _STEPS:
            opened = step(text, outline, road)
            if opened is not None:
                return opened
    raise Malformed(
        "neither an event nor a job, nor from SNS, EventBridge or CloudEvents; as an event: "
        + complaint
    )


def _traceparent(message: ReceivedMessage) -> str | None:
    """Of the last hop, whose span is the nearest."""
    attribute = message.attributes.get("traceparent")
    return first_traceparent(None if attribute is None else attribute.value)


def _with_trace(incoming: Incoming, message: ReceivedMessage) -> Incoming:
    """With X-Ray's trace, if nobody has told another one. AWS sets that header by itself for any
    producer that X-Ray traces, so it says less than what somebody wrote on purpose."""
    if incoming.traceparent is not None or message.trace_header is None:
        return incoming
    traceparent = traceparent_of_x_ray(message.trace_header)
    return msgspec.structs.replace(incoming, traceparent=traceparent)


def _reason(error: Exception) -> str:
    match error:
        case Malformed():
            return str(error)
        case msgspec.DecodeError():
            return f"no JSON: {error}"
        case _:
            return f"{type(error).__name__}: {error}"
