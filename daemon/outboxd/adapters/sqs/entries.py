"""An event as one entry of SendMessageBatch."""

from typing import TYPE_CHECKING

from outboxd.core.message_groups import group_of
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import STRING, message_of, oversize
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import Refused
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Entry

if TYPE_CHECKING:
    from types_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

MESSAGE_BYTES = 1_048_576
"""The most of one message, and of all messages of one call (SQS quotas, since August 2025)."""

LIMITS = PackLimits(entries=10, pack_bytes=MESSAGE_BYTES, entry_bytes=MESSAGE_BYTES)


def sqs_entry(
    event: StoredEvent,
    envelope: Envelope,
    *,
    fifo: bool,
    fair: bool = False,
    source: str = "outboxd",
) -> Entry | Refused:
    """The entry without its id, or why SQS can never take it. `fair` gives messages of a standard
    queue their group; `source` is for CloudEvents."""
    message = message_of(event, envelope, source)
    if isinstance(message, Refused):
        return message
    if message.size > MESSAGE_BYTES:
        return oversize(message.size, MESSAGE_BYTES)
    content: SendMessageBatchRequestEntryTypeDef = {
        "Id": "",
        "MessageBody": message.body,
        "MessageAttributes": {
            name: {"DataType": STRING, "StringValue": value}
            for name, value in message.attributes.items()
        },
    }
    if fifo or fair:
        content["MessageGroupId"] = group_of(event)
    if fifo:
        content["MessageDeduplicationId"] = event.id
    return Entry(content, message.size)
