"""CloudEvents 1.0 in structured mode (the JSON event format): all of it is in the body."""

from datetime import datetime

import msgspec

from outboxd.core.envelopes.checks import check_text, check_zone, decoded
from outboxd.core.envelopes.identity import event_id
from outboxd.core.envelopes.incoming import Incoming, Malformed, Road
from outboxd.core.envelopes.outline import Outline, present, text_of
from outboxd.core.envelopes.tracing import first_traceparent


class _CloudEvent(msgspec.Struct):
    """An attribute that is null is one that is not there (JSON event format, 2.2).

    `aggregatetype` is an extension of ours, since a subject has no place for it; names of
    extensions have neither capitals nor underscores.
    """

    id: str
    source: str
    type: str
    subject: str | None = None
    time: datetime | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    data_base64: object = None
    aggregatetype: str | None = None


_cloud_event = msgspec.json.Decoder(_CloudEvent)


def open_cloudevents(text: str | msgspec.Raw, outline: Outline, road: Road) -> Incoming | None:
    """Its data is the payload; without a `time` it happened when it was sent."""
    if not present(outline.specversion):
        return None
    if text_of(outline.specversion) != "1.0":
        raise Malformed('CloudEvents of another `specversion` than "1.0" are not understood')
    event = decoded("CloudEvents", _cloud_event, text)
    for key, value in (("id", event.id), ("source", event.source), ("type", event.type)):
        check_text(key, value)
    if event.data_base64 is not None:
        raise Malformed("CloudEvents with `data_base64` are not understood: send JSON as `data`")
    if event.time is not None:
        check_zone("time", event.time)
    return Incoming(
        id=event_id(event.id, event.source),
        type=event.type,
        aggregate_type=event.aggregatetype or "",
        aggregate_id=event.subject or "",
        occurred_at=road.sent_at if event.time is None else event.time,
        payload=event.data,
        traceparent=first_traceparent(road.traceparent, text_of(outline.traceparent)),
    )
