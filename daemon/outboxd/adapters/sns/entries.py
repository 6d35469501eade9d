"""An event as one entry of PublishBatch."""

from typing import TYPE_CHECKING

from outboxd.core.message_groups import group_of
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import STRING, message_of
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import Refused
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Entry

if TYPE_CHECKING:
    from types_boto3_sns.type_defs import PublishBatchRequestEntryTypeDef

CALL_BYTES = 262_144
"""The most of all messages of one call, so of one message too, unless the topic has a
`MaximumMessageSize` of its own (API reference, PublishBatch)."""

MOST_BYTES = 1_048_576
"""The most that a topic can be set to (CreateTopic, `MaximumMessageSize`)."""

LIMITS = PackLimits(entries=10, pack_bytes=CALL_BYTES, entry_bytes=MOST_BYTES)
"""As long as the topic's own limit is unknown, a message that may be too large has to be tried."""


def sns_entry(
    event: StoredEvent, envelope: Envelope, *, fifo: bool, fair: bool, source: str
) -> Entry | Refused:
    """The entry without its id, or why SNS can never take it; the topic's limit is not looked at.

    `fair` gives messages of a standard topic their group, which SNS hands on to standard queues;
    `source` is for CloudEvents.
    """
    message = message_of(event, envelope, source)
    if isinstance(message, Refused):
        return message
    content: PublishBatchRequestEntryTypeDef = {
        "Id": "",
        "Message": message.body,
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
