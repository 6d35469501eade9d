"""An event as it leaves: its JSON envelope, its attributes, and what its text may not hold."""

import re
from typing import assert_never

import msgspec

from outboxd.core.outbox import StoredEvent
from outboxd.core.relay_outcomes import Refused
from outboxd.core.settings import Envelope

ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What SQS takes neither in a body nor in an attribute (API reference, SendMessage)."""

CLOUDEVENTS_TYPE = "application/cloudevents+json; charset=utf-8"
"""The content type of structured mode (CloudEvents JSON event format, section 3)."""

STRING = "String"
"""The data type of every attribute; its name counts as part of the message's size."""

_ESCAPED = {"\ufffe": "\\ufffe", "\uffff": "\\uffff"}

_encoder = msgspec.json.Encoder()


class _EventEnvelope(msgspec.Struct):
    id: str
    type: str
    aggregate_type: str
    aggregate_id: str
    occurred_at: str
    payload: msgspec.Raw
    traceparent: str | msgspec.UnsetType = msgspec.UNSET


class _JobEnvelope(msgspec.Struct):
    id: str
    type: str
    payload: msgspec.Raw
    traceparent: str | msgspec.UnsetType = msgspec.UNSET


class _CloudEvent(msgspec.Struct, kw_only=True):
    """Attributes that would be empty are left out, since the specification wants them non-empty.

    `aggregatetype` is an extension of ours; `traceparent` is one of the specification's own.
    """

    specversion: str = "1.0"
    id: str
    source: str
    type: str
    time: str
    subject: str | msgspec.UnsetType = msgspec.UNSET
    aggregatetype: str | msgspec.UnsetType = msgspec.UNSET
    traceparent: str | msgspec.UnsetType = msgspec.UNSET
    datacontenttype: str = "application/json"
    data: msgspec.Raw


class Message(msgspec.Struct, frozen=True):
    """A body and what travels beside it; `size` is what AWS counts of both, in bytes."""

    body: str
    attributes: dict[str, str]
    size: int


def message_of(event: StoredEvent, envelope: Envelope, source: str) -> Message | Refused:
    """The event as a message for SQS or SNS, or why they can never take it; found here, since some
    refusals fail the whole call there, neighbours included."""
    body = body_of(event, envelope, source=source)
    attributes = attributes_of(event, envelope)
    size = utf8_bytes(body)
    for name, value in attributes.items():
        if ILLEGAL.search(value) is not None:
            return Refused(
                f"AWS takes no such character in a message attribute: {name} = {value!r}"
            )
        size += len(name) + len(STRING) + utf8_bytes(value)
    return Message(body, attributes, size)


def body_of(
    event: StoredEvent, envelope: Envelope, *, source: str = "outboxd", traced: bool = False
) -> str:
    """The message body: JSON with exactly the keys of the envelope, the payload as it is stored.

    `source` is for CloudEvents. `traced` is for roads without attributes: the trace is then a key
    of the body, as it is of CloudEvents anyway. Every body is legal text for SQS: JSON writes
    control characters as escapes anyway, and the two others that SQS refuses are escaped here,
    which is the same JSON.
    """
    text = _encoder.encode(_wrapped(event, envelope, source, traced)).decode()
    if text.isascii():
        return text
    for character, escaped in _ESCAPED.items():
        if character in text:
            text = text.replace(character, escaped)
    return text


def _wrapped(
    event: StoredEvent, envelope: Envelope, source: str, traced: bool
) -> _EventEnvelope | _JobEnvelope | _CloudEvent:
    payload = msgspec.Raw(event.payload)
    trace = _trace(event) if traced else None
    match envelope:
        case "event":
            return _EventEnvelope(
                event.id,
                event.event_type,
                event.aggregate_type,
                event.aggregate_id,
                event.occurred_at,
                payload,
                trace or msgspec.UNSET,
            )
        case "job":
            return _JobEnvelope(event.id, event.event_type, payload, trace or msgspec.UNSET)
        case "cloudevents":
            return _CloudEvent(
                id=event.id,
                source=source,
                type=event.event_type,
                time=event.occurred_at,
                subject=event.aggregate_id or msgspec.UNSET,
                aggregatetype=event.aggregate_type or msgspec.UNSET,
                traceparent=_trace(event) or msgspec.UNSET,
                data=payload,
            )
        case _:
            assert_never(envelope)


def attributes_of(event: StoredEvent, envelope: Envelope = "event") -> dict[str, str]:
    """What travels beside the body, so that a reader can choose without parsing.

    Empty values are left out, since SQS refuses them; and so is a `traceparent` that SQS would
    refuse: no event should die of its trace.
    """
    attributes = {"event_type": event.event_type}
    if event.aggregate_id:
        attributes["aggregate_id"] = event.aggregate_id
    if trace := _trace(event):
        attributes["traceparent"] = trace
    if envelope == "cloudevents":
        attributes["content-type"] = CLOUDEVENTS_TYPE
    return attributes


def oversize(size: int, limit: int) -> Refused:
    """Why an event that is too large dies; both sizes are what a person needs to know."""
    return Refused(
        f"the message has {size} bytes with its attributes, above the limit of {limit} bytes"
    )


def utf8_bytes(text: str) -> int:
    """The length that limits count."""
    return len(text) if text.isascii() else len(text.encode())


def _trace(event: StoredEvent) -> str | None:
    """The event's trace, unless it is empty or no legal text."""
    trace = event.traceparent
    return trace if trace and ILLEGAL.search(trace) is None else None
