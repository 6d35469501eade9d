"""What a message's body says: one chain of steps from any known envelope to one event."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias
from uuid import UUID, uuid5

import msgspec

from outboxd.core.errors import OutboxdError
from outboxd.core.messages import ReceivedMessage

NAMESPACE = UUID("b4a9a4b5-0c0e-5d7e-9a57-6f1f0f0f6d27")
"""Root of the namespaces of ids that are no UUIDs: uuid5(uuid5(NAMESPACE, source), id)."""


class Malformed(OutboxdError):
    """The body is no envelope that is known; no retry can help."""


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """An event whose payload is still JSON: its type depends on the handler."""

    id: UUID
    type: str
    aggregate_type: str
    aggregate_id: str
    occurred_at: datetime
    payload: msgspec.Raw


class _Plain(msgspec.Struct):
    """A plain event or a plain job; keys beyond these belong to a newer producer."""

    id: str
    type: str
    payload: msgspec.Raw
    aggregate_type: str | msgspec.UnsetType = msgspec.UNSET
    aggregate_id: str | msgspec.UnsetType = msgspec.UNSET
    occurred_at: datetime | msgspec.UnsetType = msgspec.UNSET


Opened: TypeAlias = Incoming | None
Step: TypeAlias = Callable[[str, datetime], Opened]

_plain = msgspec.json.Decoder(_Plain)


def open_envelope(message: ReceivedMessage) -> Incoming:
    """The event in a message's body. Raises Malformed, and nothing else, if there is none."""
    try:
        sent_at = datetime.fromtimestamp(message.sent_at, UTC)
        for step in _STEPS:
            opened = step(message.body, sent_at)
            if opened is not None:
                return opened
    except Malformed:
        raise
    # Whatever a body can do to a decoder, RecursionError for one, it may do to itself alone.
    except Exception as error:
        raise Malformed(f"{type(error).__name__}: {error}") from error
    raise Malformed("the body is neither an event nor a job")


def event_id(text: str, source: str) -> UUID:
    """The id as a UUID; one that is none becomes uuid5 in the namespace of its source."""
    try:
        return UUID(text)
    except ValueError:
        return uuid5(uuid5(NAMESPACE, source), text)


def _open_plain(body: str, sent_at: datetime) -> Opened:
    """{"id","type","aggregate_type","aggregate_id","occurred_at","payload"}, or the same without
    the three in the middle: a job."""
    plain = _plain.decode(body)
    _check_text("id", plain.id)
    _check_text("type", plain.type)
    # Producers that number their rows use the same ids for different types.
    identity = event_id(plain.id, plain.type)
    match plain.aggregate_type, plain.aggregate_id, plain.occurred_at:
        case msgspec.UNSET, msgspec.UNSET, msgspec.UNSET:
            kind, key, occurred_at = "", "", sent_at
        case str(kind), str(key), datetime() as occurred_at:
            if occurred_at.tzinfo is None:
                raise Malformed("`occurred_at` has no time zone")
        case _:
            raise Malformed(
                "an event has `aggregate_type`, `aggregate_id` and `occurred_at`; a job has none "
                "of them; this has some"
            )
    return Incoming(
        id=identity,
        type=plain.type,
        aggregate_type=kind,
        aggregate_id=key,
        occurred_at=occurred_at,
        payload=plain.payload,
    )


def _check_text(key: str, text: str) -> None:
    if not text or "\0" in text:
        raise Malformed(f"`{key}` is empty or holds a NUL character")


# Plain comes first since nearly every message is; wrappers (SNS, EventBridge, CloudEvents) lack its
# keys. A step gives None for an envelope that is not its own.
_STEPS: tuple[Step, ...] = (_open_plain,)
