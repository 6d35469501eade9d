"""What a message and a batch must look like. Sizes are bytes of UTF-8, as AWS counts."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from outboxd.localaws.sns.errors import (
    batch_ids_not_distinct,
    empty_batch,
    invalid_batch_entry_id,
    invalid_parameter,
    invalid_value,
    too_many_entries,
)
from outboxd.localaws.sns.requests import Outgoing, PublishEntry
from outboxd.localaws.sns.topic import Topic
from outboxd.localaws.sqs.message import AttributeValue
from outboxd.localaws.sqs.validation import (
    MAX_BATCH_ENTRIES,
    is_batch_id,
    is_number,
    is_token,
    message_size,
)

MAX_SUBJECT = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DATA_TYPES = ("String", "Number", "Binary")
_ATTRIBUTE_NAME = re.compile(r"[\w-]+(\.[\w-]+)*\Z")


def size_of(sent: Outgoing) -> int:
    """Bytes of message, subject and attributes, which together are limited."""
    return message_size(sent.message, sent.message_attributes) + len((sent.subject or "").encode())


def check_batch(entries: Sequence[PublishEntry]) -> None:
    """What refuses a batch as a whole. Raises one of the four batch errors."""
    if not entries:
        raise empty_batch()
    if len(entries) > MAX_BATCH_ENTRIES:
        raise too_many_entries(len(entries), MAX_BATCH_ENTRIES)
    if len({entry.id for entry in entries}) < len(entries):
        raise batch_ids_not_distinct()
    if not all(is_batch_id(entry.id) for entry in entries):
        raise invalid_batch_entry_id()


def check_identifiable(topic: Topic, sent: Outgoing) -> None:
    """What a FIFO topic must be told. Raises InvalidParameter, in a batch for all of it."""
    if not topic.fifo:
        return
    if not sent.message_group_id:
        raise invalid_parameter("The MessageGroupId parameter is required for FIFO topics")
    if not sent.message_deduplication_id and not topic.content_based_deduplication:
        raise invalid_parameter(
            "The topic should either have ContentBasedDeduplication enabled or "
            "MessageDeduplicationId provided explicitly"
        )


def check_message(topic: Topic, sent: Outgoing) -> None:
    """What may be wrong with a single message, size apart. Raises InvalidParameter."""
    if not sent.message:
        raise invalid_parameter("Empty message")
    if sent.subject is not None and not _is_subject(sent.subject):
        raise invalid_parameter("Subject")
    _check_token("MessageGroupId", sent.message_group_id)
    _check_token("MessageDeduplicationId", sent.message_deduplication_id)
    if sent.message_deduplication_id is not None and not topic.fifo:
        raise invalid_parameter(
            "MessageDeduplicationId Reason: The request includes MessageDeduplicationId "
            "parameter that is not valid for this topic type"
        )


def check_structure(sent: Outgoing) -> None:
    """Raises InvalidParameter for a message by protocol that is not what it says."""
    if sent.message_structure not in ("", "json"):
        raise invalid_parameter("MessageStructure Reason: the only message structure is json")
    if sent.message_structure == "json":
        try:
            by_protocol = msgspec.json.decode(sent.message, type=dict[str, Any])
        except msgspec.DecodeError:
            raise invalid_parameter(
                "Message Structure - JSON message body failed to parse"
            ) from None
        if not isinstance(by_protocol.get("default"), str):
            raise invalid_parameter("Message Structure - No default entry in JSON message body")


def check_attributes(attributes: Mapping[str, AttributeValue]) -> None:
    """Raises ParameterValueInvalid. SNS, unlike SQS, takes more than ten of them."""
    for name, value in attributes.items():
        if not _ATTRIBUTE_NAME.match(name) or len(name) > 256:
            raise invalid_value(f"Invalid attribute name: {name!r}")
        _check_value(name, value)


def _check_value(name: str, value: AttributeValue) -> None:
    kind = value.data_type.partition(".")[0]
    if kind not in _DATA_TYPES:
        raise invalid_value(
            f"The message attribute '{name}' has an invalid message attribute type, the set of "
            "supported type prefixes is Binary, Number, and String."
        )
    text, data = value.string_value, value.binary_value
    if (data if kind == "Binary" else text) in (None, "", b""):
        raise invalid_value(
            f"The message attribute '{name}' must contain non-empty message attribute value "
            f"for message attribute type '{value.data_type}'."
        )
    if text is not None and data is not None:
        raise invalid_value(f"The message attribute '{name}' has more than one value.")
    if kind == "Number" and not is_number(text or ""):
        raise invalid_value(f"Could not cast message attribute '{name}' value to number.")


def _check_token(name: str, value: str | None) -> None:
    if value is not None and not is_token(value):
        raise invalid_parameter(
            f"{name} Reason: {name} can only include alphanumeric and punctuation characters. "
            "1 to 128 in length."
        )


def _is_subject(subject: str) -> bool:
    return 0 < len(subject) < MAX_SUBJECT and not _CONTROL.search(subject)
