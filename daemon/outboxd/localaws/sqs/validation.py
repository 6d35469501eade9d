"""What a message, a name and a batch must look like. Sizes are bytes of UTF-8, as AWS counts."""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs.errors import (
    batch_ids_not_distinct,
    empty_batch,
    invalid_batch_entry_id,
    invalid_message_contents,
    invalid_parameter,
    invalid_parameter_value,
    missing_parameter,
    too_many_entries,
)
from outboxd.localaws.sqs.message import AttributeValue

MAX_ATTRIBUTES = 10
MAX_BATCH_ENTRIES = 10
MAX_ATTRIBUTE_NAME = 256

# The characters of XML 1.0. Lone surrogates, which JSON can express, are outside them too.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")
_FIFO_SUFFIX = ".fifo"
_BATCH_ID = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")
_TOKEN = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]{1,128}\Z")
_ATTRIBUTE_NAME = re.compile(r"[\w-]+(\.[\w-]+)*\Z")
_RESERVED_NAME = re.compile(r"(aws|amazon)\.", re.IGNORECASE)
_DATA_TYPE = re.compile(r"(String|Number|Binary)(\..+)?\Z", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z")


class Identified(Protocol):
    """An entry of a batch."""

    @property
    def id(self) -> str: ...


def check_queue_name(name: str, *, fifo: bool) -> None:
    """Raises InvalidParameterValue."""
    stem = name.removesuffix(_FIFO_SUFFIX)
    if not _QUEUE_NAME.match(stem) or len(name) > 80:
        raise invalid_parameter(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
        )
    if fifo and stem == name:
        raise invalid_parameter("The name of a FIFO queue can only end with '.fifo'.")
    if not fifo and stem != name:
        raise invalid_parameter(
            "Can only include alphanumeric characters, hyphens, or underscores; "
            "only the name of a FIFO queue ends with '.fifo'."
        )


def check_range(value: int, name: str, lowest: int, highest: int, reason: str = "") -> int:
    """The value. Raises InvalidParameterValue outside the bounds."""
    if lowest <= value <= highest:
        return value
    reason = reason or f"Must be between {lowest} and {highest}, if provided."
    raise invalid_parameter_value(value, name, reason)


def check_token(value: str | None, name: str) -> None:
    """A group, deduplication or attempt id. Raises InvalidParameterValue."""
    if value is not None and not is_token(value):
        reason = (
            f"{name} can only include alphanumeric and punctuation characters. 1 to 128 in length."
        )
        raise invalid_parameter_value(value, name, reason)


def is_token(value: str) -> bool:
    """Whether this can be a group or deduplication id."""
    return _TOKEN.match(value) is not None


def is_batch_id(value: str) -> bool:
    return _BATCH_ID.match(value) is not None


def is_number(text: str) -> bool:
    """Whether this can be the value of an attribute of type Number."""
    return _NUMBER.match(text) is not None


def check_body(body: str) -> None:
    """Raises MissingParameter if it is empty, InvalidMessageContents for a bad character."""
    if not body:
        raise missing_parameter("MessageBody")
    if _FORBIDDEN.search(body):
        raise invalid_message_contents()


def check_batch(entries: Sequence[Identified], entry_type: str) -> None:
    """What refuses a batch as a whole. Raises one of the four batch errors."""
    if not entries:
        raise empty_batch(entry_type)
    if len(entries) > MAX_BATCH_ENTRIES:
        raise too_many_entries(len(entries), MAX_BATCH_ENTRIES)
    seen: set[str] = set()
    for entry in entries:
        if not is_batch_id(entry.id):
            raise invalid_batch_entry_id()
        if entry.id in seen:
            raise batch_ids_not_distinct(entry.id)
        seen.add(entry.id)


def message_size(body: str, attributes: Mapping[str, AttributeValue]) -> int:
    """Bytes of the body and of every attribute's name, data type and value."""
    size = _utf8_length(body)
    for name, value in attributes.items():
        size += _utf8_length(name) + _utf8_length(value.data_type)
        size += _utf8_length(value.string_value or "") + len(value.binary_value or b"")
    return size


def _utf8_length(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


def check_attributes(attributes: Mapping[str, AttributeValue]) -> None:
    """Message attributes. Raises InvalidParameterValue or InvalidMessageContents."""
    if len(attributes) > MAX_ATTRIBUTES:
        raise invalid_parameter(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum "
            f"[{MAX_ATTRIBUTES}]."
        )
    for name, value in attributes.items():
        _check_attribute_name(name)
        _check_attribute_value(name, value)


def _check_attribute_name(name: str) -> None:
    if len(name) > MAX_ATTRIBUTE_NAME or not _ATTRIBUTE_NAME.match(name):
        raise invalid_parameter(
            f"Message (user) attribute name '{name}' is invalid: 1 to {MAX_ATTRIBUTE_NAME} "
            "letters, digits, hyphens, underscores and periods, no period first, last or twice "
            "in a row."
        )
    if _RESERVED_NAME.match(name):
        raise invalid_parameter(
            f"Message (user) attribute name '{name}' starts with a prefix that AWS reserves."
        )


def _check_attribute_value(name: str, value: AttributeValue) -> None:
    kind = _DATA_TYPE.match(value.data_type)
    if kind is None or len(value.data_type) > MAX_ATTRIBUTE_NAME:
        raise invalid_parameter(
            f"The type of message (user) attribute '{name}' is invalid. "
            "You must use only the following supported type prefixes: Binary, Number, String."
        )
    wanted, other = value.string_value, value.binary_value
    if kind[1] == "Binary":
        if not other or wanted is not None:
            raise _no_value(name, "Binary")
        return
    if not wanted or other is not None:
        raise _no_value(name, kind[1])
    if _FORBIDDEN.search(wanted):
        raise invalid_message_contents()
    if kind[1] == "Number" and not is_number(wanted):
        raise invalid_parameter(
            f"Can't cast the value of message (user) attribute '{name}' to a number."
        )


def _no_value(name: str, kind: str) -> AwsError:
    return invalid_parameter(
        f"Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'."
    )
