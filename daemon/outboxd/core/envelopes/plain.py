"""Events and jobs as outboxd itself writes them."""

from datetime import datetime

import msgspec

from outboxd.core.envelopes.checks import check_text, check_zone
from outboxd.core.envelopes.identity import event_id
from outboxd.core.envelopes.incoming import Incoming, Malformed, Road


class _Plain(msgspec.Struct):
    """A plain event or a plain job; keys beyond these belong to a newer producer."""

    id: str
    type: str
    payload: msgspec.Raw
    aggregate_type: str | msgspec.UnsetType = msgspec.UNSET
    aggregate_id: str | msgspec.UnsetType = msgspec.UNSET
    occurred_at: datetime | msgspec.UnsetType = msgspec.UNSET
    specversion: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_plain = msgspec.json.Decoder(_Plain)


def open_plain(text: str | msgspec.Raw, road: Road) -> Incoming | None:
    """{"id","type","aggregate_type","aggregate_id","occurred_at","payload"}, or the same without
    the three in the middle: a job. None for CloudEvents, whose extensions may be called `payload`.
    """
    plain = _plain.decode(text)
    if plain.specversion is not msgspec.UNSET:
        return None
    check_text("id", plain.id)
    check_text("type", plain.type)
    match plain.aggregate_type, plain.aggregate_id, plain.occurred_at:
        case msgspec.UNSET, msgspec.UNSET, msgspec.UNSET:
            kind, key, occurred_at = "", "", road.sent_at
        case str(kind), str(key), datetime() as occurred_at:
            check_zone("occurred_at", occurred_at)
        case _:
            raise Malformed(
                "an event has `aggregate_type`, `aggregate_id` and `occurred_at`; a job has none "
                "of them; this has some"
            )
    return Incoming(
        id=event_id(plain.id, plain.type),
        type=plain.type,
        aggregate_type=kind,
        aggregate_id=key,
        occurred_at=occurred_at,
        payload=plain.payload,
        traceparent=road.traceparent,
    )
