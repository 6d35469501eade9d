"""From an entry of PutEvents to an event."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from outboxd.localaws.events.requests import Entry
from outboxd.localaws.ids import new_id
from outboxd.localaws.matching import values
from outboxd.localaws.sqs.arns import ACCOUNT


class Event(NamedTuple):
    """What rules look at and targets are sent; `content` is `text` as patterns see it."""

    id: str
    text: str
    content: dict[str, Any]
    ingested_at: str
    trace_header: str | None


def event_of(entry: Entry, region: str, now: float) -> Event:
    """The event of a valid entry. The detail stays as it is written, down to its numbers."""
    id = new_id()
    members = {
        "version": "0",
        "id": id,
        "detail-type": entry.detail_type,
        "source": entry.source,
        "account": ACCOUNT,
        "time": _timestamp(now if entry.time is None else entry.time),
        "region": region,
        "resources": entry.resources,
        "detail": msgspec.Raw(entry.detail.encode()),
    }
    text = msgspec.json.encode(members).decode()
    return Event(id, text, values.decoded(text), _timestamp(now), entry.trace_header)


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
