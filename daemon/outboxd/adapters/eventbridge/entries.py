"""An event as one entry of PutEvents."""

from datetime import datetime
from typing import TYPE_CHECKING

from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import body_of, utf8_bytes
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import Refused
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Entry

if TYPE_CHECKING:
    from types_boto3_events.type_defs import PutEventsRequestEntryTypeDef

CALL_BYTES = 262_144
"""The most of all entries of one call, in every region and at every time."""

MOST_BYTES = 1_048_576
"""What an event bus takes since January 2026, as the AWS Compute Blog has announced; an entry above
CALL_BYTES goes alone, for EventBridge to judge."""

TIME_BYTES = 14
"""What a time counts, however it is written ("Calculating PutEvents event entry size")."""

LONGEST_DETAIL_TYPE = 128

LIMITS = PackLimits(entries=10, pack_bytes=CALL_BYTES, entry_bytes=MOST_BYTES)


def eventbridge_entry(
    event: StoredEvent, envelope: Envelope, *, bus_name: str, source: str, cloudevents_source: str
) -> Entry | Refused:
    """The entry, or why EventBridge can never take it.

    The detail is the whole envelope, with the trace in it, for EventBridge has no attributes; its
    detail-type is the event's type, which rules choose by.
    """
    if len(event.event_type) > LONGEST_DETAIL_TYPE:
        return Refused(
            f"the event type has {len(event.event_type)} characters, above the "
            f"{LONGEST_DETAIL_TYPE} that EventBridge takes as a detail-type"
        )
    detail = body_of(event, envelope, source=cloudevents_source, traced=True)
    resources = [event.aggregate_id] if event.aggregate_id else []
    content: PutEventsRequestEntryTypeDef = {
        "EventBusName": bus_name,
        "Source": source,
        "DetailType": event.event_type,
        "Detail": detail,
        "Resources": resources,
    }
    size = sum(utf8_bytes(text) for text in (source, event.event_type, detail, *resources))
    if (time := _time(event.occurred_at)) is not None:
        content["Time"] = time
        size += TIME_BYTES
    if size > MOST_BYTES:
        return Refused(
            f"the entry has {size} bytes with its source, its detail-type and its resources, above "
            f"the limit of {MOST_BYTES} bytes"
        )
    return Entry(content, size)


def _time(occurred_at: str) -> datetime | None:
    """None for a time that EventBridge would refuse, such as `infinity`: the event then has the
    time of the call, and what was meant is still in its envelope."""
    try:
        time = datetime.fromisoformat(occurred_at)
        return time if time.timestamp() >= 0 else None
    except (ValueError, OverflowError):
        return None
