"""Dead letters: the message unchanged, and one attribute that says why it is here."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from outboxd.core.envelopes import Incoming
from outboxd.core.message_plan import DeadHandler
from outboxd.core.messages import Attribute, ReceivedMessage
from outboxd.core.outcomes import DeadLetter
from outboxd.core.settings import is_fifo

ATTRIBUTE = "outboxd"
"""Name of the message attribute that holds the reason, as JSON."""

MAX_ATTRIBUTES = 10
MAX_MESSAGE_BYTES = 1_048_576
"""The limits of SQS: attributes of a message, bytes of its body and attributes together."""

_OURS = ("event_type", "aggregate_id", "traceparent")
_ERROR_LENGTHS = (1000, 200, 0)


class Letter(msgspec.Struct, frozen=True):
    """A message for the dead-letter queue. Standard queues too may have a `group_id`, but refuse a
    `deduplication_id`, which only a letter for a FIFO queue has."""

    body: str
    attributes: dict[str, Attribute]
    trace_header: str | None = None
    group_id: str | None = None
    deduplication_id: str | None = None


def letter_bytes(letter: Letter) -> int:
    """What the letter counts for against MAX_MESSAGE_BYTES, of one message and of one call."""
    # "surrogatepass": a body that no encoder accepts did not come from SQS, but has a size.
    body = len(letter.body.encode("utf-8", "surrogatepass"))
    return body + sum(_bytes(name, attribute) for name, attribute in letter.attributes.items())


def write_letter(
    queue: str,
    message: ReceivedMessage,
    incoming: Incoming | None,
    cause: DeadLetter,
    dead: Sequence[DeadHandler],
    now: float,
) -> Letter:
    """The letter for a message of the SQS queue `queue`, written at Unix time `now`.

    `incoming` is None if the body could not be understood, `dead` is empty if no handler was to
    blame. The error is shortened, and foreign attributes are left out, named in the JSON, as far as
    the limits of SQS demand it; the body never is.
    """
    to_fifo = is_fifo(queue)  # the dead-letter queue is of the same type (core.queue_rules)
    kept, dropped = _room_for_one(message.attributes)
    while True:
        for length in _ERROR_LENGTHS:
            facts = _facts(queue, message, incoming, cause, dead, now, length)
            if dropped:
                facts["dropped_attributes"] = dropped
            # ASCII, since SQS refuses some characters that JSON allows (SendMessage, "#xFFFE").
            attributes = {**kept, ATTRIBUTE: Attribute("String", json.dumps(facts))}
            letter = _letter(message, attributes, to_fifo)
            if letter_bytes(letter) <= MAX_MESSAGE_BYTES:
                return letter
        if not kept:
            # A body that fills the message leaves no room for a reason; the log has it.
            return _letter(message, _without_reason(message.attributes), to_fifo)
        kept, name = _without_least(kept)
        dropped = [*dropped, name]


def _facts(
    queue: str,
    message: ReceivedMessage,
    incoming: Incoming | None,
    cause: DeadLetter,
    dead: Sequence[DeadHandler],
    now: float,
    longest_error: int,
) -> dict[str, object]:
    return {
        "reason": cause.reason.value,
        "error": cause.error[:longest_error],
        "handlers": [
            {
                "name": d.handler,
                "reason": d.letter.reason.value,
                "error": d.letter.error[:longest_error],
                "attempts": d.attempts,
            }
            for d in dead
        ],
        "source_queue": queue,
        "message_id": message.message_id,
        "receive_count": message.receive_count,
        "event_id": None if incoming is None else str(incoming.id),
        "event_type": None if incoming is None else incoming.type[:255],
        "sent_at": _iso(message.sent_at),
        "dead_lettered_at": _iso(now),
    }


def _iso(unix_seconds: float) -> str | None:
    try:
        return datetime.fromtimestamp(unix_seconds, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def _letter(message: ReceivedMessage, attributes: dict[str, Attribute], to_fifo: bool) -> Letter:
    # The message's own id: a letter that is sent again, since its answer or the delete was lost, is
    # the same letter; a message that was redriven has a new id, and so has its letter.
    deduplicated = to_fifo and message.group_id is not None
    return Letter(
        message.body,
        attributes,
        message.trace_header,
        message.group_id,
        message.message_id if deduplicated else None,
    )


def _room_for_one(
    attributes: Mapping[str, Attribute],
) -> tuple[dict[str, Attribute], list[str]]:
    """The attributes to keep, and the names of those that must make room for the reason."""
    kept = _without_reason(attributes)
    dropped: list[str] = []
    while len(kept) >= MAX_ATTRIBUTES:
        kept, name = _without_least(kept)
        dropped.append(name)
    return kept, dropped


def _without_reason(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """An older reason belongs to a letter that was redriven; this is a new story."""
    return {name: a for name, a in attributes.items() if name != ATTRIBUTE}


def _without_least(attributes: dict[str, Attribute]) -> tuple[dict[str, Attribute], str]:
    """All but the least important: a foreign one before ours, and of them the largest."""
    least = max(attributes, key=lambda name: (name not in _OURS, _bytes(name, attributes[name])))
    return {name: a for name, a in attributes.items() if name != least}, least


def _bytes(name: str, attribute: Attribute) -> int:
    """Name, type and value count (SQS developer guide, "message attributes")."""
    value = attribute.value
    length = len(value) if isinstance(value, bytes) else len(value.encode())
    return len(name.encode()) + len(attribute.data_type.encode()) + length
