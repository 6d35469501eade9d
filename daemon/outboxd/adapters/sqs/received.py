"""Between SQS's JSON and messages and letters of ours."""

from typing import TYPE_CHECKING

from outboxd.core.letters import Letter
from outboxd.core.messages import Attribute, ReceivedMessage

if TYPE_CHECKING:
    from types_boto3_sqs.type_defs import (
        MessageAttributeValueOutputTypeDef,
        MessageAttributeValueTypeDef,
        MessageTypeDef,
        SendMessageBatchRequestEntryTypeDef,
    )

_NO_ATTRIBUTES: dict[str, Attribute] = {}


def received(message: "MessageTypeDef") -> ReceivedMessage:
    """A message of ReceiveMessage. What SQS left out has a default: nothing here may fail."""
    system = message.get("Attributes", {})
    attributes = message.get("MessageAttributes")
    return ReceivedMessage(
        message_id=message.get("MessageId", ""),
        receipt_handle=message.get("ReceiptHandle", ""),
        receive_count=int(system.get("ApproximateReceiveCount", 1)),
        sent_at=int(system.get("SentTimestamp", 0)) / 1000,
        body=message.get("Body", ""),
        attributes=_attributes(attributes) if attributes else _NO_ATTRIBUTES,
        group_id=system.get("MessageGroupId"),
        trace_header=system.get("AWSTraceHeader"),
        moved_from=_name(system.get("DeadLetterQueueSourceArn")),
    )


def letter_entry(index: int, letter: Letter) -> "SendMessageBatchRequestEntryTypeDef":
    """A letter as an entry of SendMessageBatch."""
    entry: SendMessageBatchRequestEntryTypeDef = {
        "Id": str(index),
        "MessageBody": letter.body,
        "MessageAttributes": {name: _value(a) for name, a in letter.attributes.items()},
    }
    if letter.trace_header is not None:
        entry["MessageSystemAttributes"] = {
            "AWSTraceHeader": {"DataType": "String", "StringValue": letter.trace_header}
        }
    if letter.group_id is not None:
        entry["MessageGroupId"] = letter.group_id
    if letter.deduplication_id is not None:
        entry["MessageDeduplicationId"] = letter.deduplication_id
    return entry


def _name(arn: str | None) -> str | None:
    return None if arn is None else arn.rpartition(":")[2]


def _attributes(
    attributes: "dict[str, MessageAttributeValueOutputTypeDef]",
) -> dict[str, Attribute]:
    return {
        name: Attribute(a["DataType"], a.get("BinaryValue", a.get("StringValue", "")))
        for name, a in attributes.items()
    }


def _value(attribute: Attribute) -> "MessageAttributeValueTypeDef":
    match attribute.value:
        case str(text):
            return {"DataType": attribute.data_type, "StringValue": text}
        case bytes(data):
            return {"DataType": attribute.data_type, "BinaryValue": data}
