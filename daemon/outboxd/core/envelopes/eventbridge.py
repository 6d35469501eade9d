"""EventBridge events: around an envelope of ours or another's, or around a mere payload."""

from datetime import datetime

import msgspec

from outboxd.core.envelopes.checks import check_text, check_zone, decoded
from outboxd.core.envelopes.identity import event_id
from outboxd.core.envelopes.incoming import Incoming, Road, Wrapped
from outboxd.core.envelopes.outline import Key, Outline, outline_of, present, text_of
from outboxd.core.envelopes.sns import NOTIFICATION
from outboxd.core.envelopes.tracing import first_traceparent


class _Bridged(msgspec.Struct):
    """The keys that matter of "AWS service event metadata" (EventBridge user guide)."""

    id: str
    source: str
    time: datetime
    detail: msgspec.Raw
    detail_type: str = msgspec.field(name="detail-type")
    resources: list[str] = []


_bridged = msgspec.json.Decoder(_Bridged)
_identity = msgspec.json.Decoder(str | int)


def open_eventbridge(
    text: str | msgspec.Raw, outline: Outline, road: Road
) -> Incoming | Wrapped | None:
    """Its detail is opened in its turn if it is an envelope, or else becomes the payload."""
    if not present(outline.detail_type, outline.detail):
        return None
    bridged = decoded("an EventBridge event", _bridged, text)
    check_text("detail-type", bridged.detail_type)
    check_text("id", bridged.id)
    # A detail that is no object has no keys, and is a payload.
    detail = outline_of(bridged.detail) or Outline()
    traceparent = first_traceparent(road.traceparent, text_of(detail.traceparent))
    if _is_envelope(detail, bridged.detail_type):
        name = f"an EventBridge event from {bridged.source[:256]}"
        return Wrapped(name=name, text=bridged.detail, traceparent=traceparent)
    check_zone("time", bridged.time)
    own_id = _own_id(detail.id) or _own_id(detail.event_id) or bridged.id
    return Incoming(
        id=event_id(own_id, f"{bridged.source} {bridged.detail_type}"),
        type=bridged.detail_type,
        aggregate_type="",
        aggregate_id=bridged.resources[0] if bridged.resources else "",
        occurred_at=bridged.time,
        payload=bridged.detail,
        traceparent=traceparent,
    )


def _is_envelope(detail: Outline, detail_type: str) -> bool:
    """Stricter than at the top of a body, where nothing but an envelope makes sense: a detail of
    somebody else's may well have an `id`, a `type` and a `payload` that mean other things."""
    if present(detail.specversion, detail.id, detail.source, detail.type):
        return True
    if present(detail.id, detail.type, detail.payload):
        return present(detail.aggregate_type) or text_of(detail.type) == detail_type
    return (text_of(detail.sns_type) == NOTIFICATION and present(detail.topic)) or present(
        detail.detail_type, detail.detail, detail.source, detail.id
    )


def _own_id(key: Key) -> str | None:
    """A text, or the number of a row. Anything else identifies nothing: it is mere payload."""
    if isinstance(key, msgspec.UnsetType):
        return None
    try:
        return str(_identity.decode(key)) or None
    except msgspec.ValidationError:
        return None
