"""An event as one entry of SendMessageBatch."""

import hashlib
import re
from typing import TYPE_CHECKING, Literal

from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import ILLEGAL, attributes_of, body_of, utf8_bytes
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import Refused
from outboxd.ports.destination import Entry

if TYPE_CHECKING:
    from types_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

MESSAGE_BYTES = 1_048_576
"""The most of one message, and of all messages of one call (SQS quotas, since August 2025)."""

LIMITS = PackLimits(entries=10, pack_bytes=MESSAGE_BYTES, entry_bytes=MESSAGE_BYTES)

_STRING = "String"
_GROUP_ID = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}\Z")


def sqs_entry(
    event: StoredEvent, envelope: Literal["event", "job"], *, fifo: bool
) -> Entry | Refused:
    """The entry without its id, or why SQS can never take it; a refused entry is found here, since
    some of them fail the whole call at SQS, neighbours included."""
    body = body_of(event, envelope)
    attributes = attributes_of(event)
    size = utf8_bytes(body)
    for name, value in attributes.items():
        if ILLEGAL.search(value) is not None:
            return Refused(
                f"SQS takes no such character in a message attribute: {name} = {value!r}"
            )
        size += len(name) + len(_STRING) + utf8_bytes(value)
    if size > MESSAGE_BYTES:
        return oversize(size, MESSAGE_BYTES)
    content: SendMessageBatchRequestEntryTypeDef = {
        "Id": "",
        "MessageBody": body,
        "MessageAttributes": {
            name: {"DataType": _STRING, "StringValue": value} for name, value in attributes.items()
        },
    }
    if fifo:
        content["MessageGroupId"] = _group_of(event)
        content["MessageDeduplicationId"] = event.id
    return Entry(content, size)


def oversize(size: int, limit: int) -> Refused:
    """Why an event that is too large dies; both sizes are what a person needs to know."""
    return Refused(
        f"the message has {size} bytes with its attributes, above the limit of {limit} bytes"
    )


def _group_of(event: StoredEvent) -> str:
    """The aggregate as a message group, hashed when SQS would not take it as it is."""
    group = f"{event.aggregate_type}/{event.aggregate_id}"
    if _GROUP_ID.match(group):
        return group
    return hashlib.sha256(group.encode(errors="surrogatepass")).hexdigest()[:32]
