"""Queue attributes: between AWS's map of strings and our settings."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from outboxd.localaws.sqs.errors import (
    invalid_attribute_name,
    invalid_attribute_value,
    unknown_attribute,
)
from outboxd.localaws.sqs.redrive import parsed_redrive, parsed_redrive_allow
from outboxd.localaws.sqs.settings import (
    MAX_DELAY_SECONDS,
    MAX_MESSAGE_BYTES,
    MAX_VISIBILITY_SECONDS,
    MAX_WAIT_SECONDS,
    Settings,
)

Parse = Callable[[str], Any]


class _Attribute(NamedTuple):
    """The field that holds an attribute, and how its text becomes a value (or ValueError)."""

    field: str
    parse: Parse
    fifo_only: bool = False


def _whole(lowest: int, highest: int) -> Parse:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit()) or not lowest <= int(text) <= highest:
            raise ValueError(f"Must be an integer between {lowest} and {highest}.")
        return int(text)

    return parse


def _truth(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("Must be true or false.")


def _one_of(*choices: str) -> Parse:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"Must be one of {', '.join(choices)}.")
        return text

    return parse


def _json_document(text: str) -> str:
    if text:
        try:
            msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError:
            raise ValueError("Must be a JSON object.") from None
    return text


_SETTABLE: dict[str, _Attribute] = {
    "DelaySeconds": _Attribute("delay_seconds", _whole(0, MAX_DELAY_SECONDS)),
    "MaximumMessageSize": _Attribute("maximum_message_size", _whole(1024, MAX_MESSAGE_BYTES)),
    "MessageRetentionPeriod": _Attribute("retention_seconds", _whole(60, 1_209_600)),
    "ReceiveMessageWaitTimeSeconds": _Attribute(
        "receive_wait_seconds", _whole(0, MAX_WAIT_SECONDS)
    ),
    "VisibilityTimeout": _Attribute("visibility_seconds", _whole(0, MAX_VISIBILITY_SECONDS)),
    "Policy": _Attribute("policy", _json_document),
    "RedrivePolicy": _Attribute("redrive", parsed_redrive),
    "RedriveAllowPolicy": _Attribute("redrive_allow", parsed_redrive_allow),
    "KmsMasterKeyId": _Attribute("kms_key", str),
    "KmsDataKeyReusePeriodSeconds": _Attribute("kms_reuse_seconds", _whole(60, 86_400)),
    "SqsManagedSseEnabled": _Attribute("sse_managed", _truth),
    "ContentBasedDeduplication": _Attribute("content_based_deduplication", _truth, fifo_only=True),
    "DeduplicationScope": _Attribute(
        "deduplication_scope", _one_of("queue", "messageGroup"), fifo_only=True
    ),
    "FifoThroughputLimit": _Attribute(
        "fifo_throughput_limit", _one_of("perQueue", "perMessageGroupId"), fifo_only=True
    ),
}

COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
KNOWN = frozenset(
    (*_SETTABLE, *COUNTS, "FifoQueue", "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp")
)


def created(attributes: Mapping[str, str]) -> Settings:
    """The settings of a new queue. Raises AwsError."""
    settings = Settings()
    rest = dict(attributes)
    if "FifoQueue" in rest:
        # A queue is made standard by leaving FifoQueue out: AWS refuses an explicit "false".
        if rest.pop("FifoQueue").lower() != "true":
            raise unknown_attribute("FifoQueue")
        settings = msgspec.structs.replace(settings, fifo=True)
    return changed(settings, rest)


def changed(settings: Settings, attributes: Mapping[str, str]) -> Settings:
    """The settings after SetQueueAttributes. Raises AwsError and changes nothing."""
    values: dict[str, Any] = {}
    for name, text in attributes.items():
        attribute = _settable(name, settings)
        try:
            values[attribute.field] = attribute.parse(text)
        except ValueError as error:
            raise invalid_attribute_value(name, str(error)) from None
    _check_encryption(values)
    after = msgspec.structs.replace(settings, **values)
    if after.fifo_throughput_limit == "perMessageGroupId" and not after.deduplicates_per_group:
        reason = "perMessageGroupId is allowed only when DeduplicationScope is messageGroup."
        raise invalid_attribute_value("FifoThroughputLimit", reason)
    return after


def _settable(name: str, settings: Settings) -> _Attribute:
    if name == "FifoQueue" and settings.fifo:
        raise invalid_attribute_value(name, "Modifying queue type is not supported.")
    attribute = _SETTABLE.get(name)
    if attribute is None:
        raise unknown_attribute(name)
    if attribute.fifo_only and not settings.fifo:
        if name == "ContentBasedDeduplication":
            raise unknown_attribute(name)
        raise invalid_attribute_name(
            f"You can specify the {name} only when FifoQueue is set to true."
        )
    return attribute


def _check_encryption(values: dict[str, Any]) -> None:
    """One kind of encryption at a time: a KMS key switches the managed kind off."""
    if values.get("kms_key"):
        if values.get("sse_managed"):
            raise invalid_attribute_name(
                "You can use one type of server-side encryption (SSE) at one time. "
                "You can either enable KMS SSE or SQS SSE."
            )
        values["sse_managed"] = False
    elif values.get("sse_managed"):
        values["kms_key"] = ""


def rendered(settings: Settings) -> dict[str, str]:
    """The settings as GetQueueAttributes reports them."""
    texts = {
        "DelaySeconds": str(settings.delay_seconds),
        "MaximumMessageSize": str(settings.maximum_message_size),
        "MessageRetentionPeriod": str(settings.retention_seconds),
        "ReceiveMessageWaitTimeSeconds": str(settings.receive_wait_seconds),
        "VisibilityTimeout": str(settings.visibility_seconds),
        "SqsManagedSseEnabled": _text(settings.sse_managed),
    }
    if settings.policy:
        texts["Policy"] = settings.policy
    if settings.redrive is not None:
        texts["RedrivePolicy"] = settings.redrive.rendered()
    if settings.redrive_allow is not None:
        texts["RedriveAllowPolicy"] = settings.redrive_allow.rendered()
    if settings.kms_key:
        texts["KmsMasterKeyId"] = settings.kms_key
        texts["KmsDataKeyReusePeriodSeconds"] = str(settings.kms_reuse_seconds)
    if settings.fifo:
        texts["FifoQueue"] = "true"
        texts["ContentBasedDeduplication"] = _text(settings.content_based_deduplication)
        texts["DeduplicationScope"] = settings.deduplication_scope
        texts["FifoThroughputLimit"] = settings.fifo_throughput_limit
    return texts


def difference(asked: Mapping[str, str], existing: Settings) -> str | None:
    """The first attribute whose asked value is not the existing one, or None.

    Raises AwsError where an asked attribute could not be set on such a queue at all.
    """
    present = rendered(existing)
    fifo = asked.get("FifoQueue")
    if (fifo is not None and fifo.lower() == "true") != existing.fifo:
        return "FifoQueue"
    rest = {name: text for name, text in asked.items() if name != "FifoQueue"}
    wanted = rendered(changed(existing, rest))
    # Keys in the caller's order, so that the report names what they wrote first.
    return next((name for name in rest if wanted.get(name) != present.get(name)), None)


def _text(flag: bool) -> str:
    return "true" if flag else "false"
