"""An event as it leaves: its JSON envelope, its attributes, and what its text may not hold."""

import re
from typing import Literal, assert_never

import msgspec

from outboxd.core.outbox import StoredEvent

ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What SQS takes neither in a body nor in an attribute (API reference, SendMessage)."""

_ESCAPED = {"\ufffe": "\\ufffe", "\uffff": "\\uffff"}

_encoder = msgspec.json.Encoder()


class _EventEnvelope(msgspec.Struct):
    id: str
    type: str
    aggregate_type: str
    aggregate_id: str
    occurred_at: str
    payload: msgspec.Raw


class _JobEnvelope(msgspec.Struct):
    id: str
    type: str
    payload: msgspec.Raw


def body_of(event: StoredEvent, envelope: Literal["event", "job"]) -> str:
    """The message body: JSON with exactly the keys of the envelope, the payload as it is stored.

    Every body is legal text for SQS: JSON writes control characters as escapes anyway, and the two
    others that SQS refuses are escaped here, which is the same JSON.
    """
    text = _encoder.encode(_wrapped(event, envelope)).decode()
    if text.isascii():
        return text
    for character, escaped in _ESCAPED.items():
        if character in text:
            text = text.replace(character, escaped)
    return text


def _wrapped(
    event: StoredEvent, envelope: Literal["event", "job"]
) -> "_EventEnvelope | _JobEnvelope":
    payload = msgspec.Raw(event.payload)
    match envelope:
        case "event":
            return _EventEnvelope(
                event.id,
                event.event_type,
                event.aggregate_type,
                event.aggregate_id,
                event.occurred_at,
                payload,
            )
        case "job":
            return _JobEnvelope(event.id, event.event_type, payload)
        case _:
            assert_never(envelope)


def attributes_of(event: StoredEvent) -> dict[str, str]:
    """What travels beside the body, so that a reader can choose without parsing.

    Empty values are left out, since SQS refuses them; and so is a `traceparent` that SQS would
    refuse: no event should die of its trace.
    """
    attributes = {"event_type": event.event_type}
    if event.aggregate_id:
        attributes["aggregate_id"] = event.aggregate_id
    if event.traceparent and ILLEGAL.search(event.traceparent) is None:
        attributes["traceparent"] = event.traceparent
    return attributes


def utf8_bytes(text: str) -> int:
    """The length that limits count."""
    return len(text) if text.isascii() else len(text.encode())
