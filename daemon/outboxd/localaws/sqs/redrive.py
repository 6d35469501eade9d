"""RedrivePolicy and RedriveAllowPolicy: JSON inside a queue attribute."""

from enum import Enum
from typing import Any

import msgspec

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs.errors import invalid_parameter_value

MAX_RECEIVE_COUNT_LIMIT = 1000
MAX_SOURCE_QUEUES = 10


class RedrivePolicy(msgspec.Struct, frozen=True):
    """Where messages go that were received more than `max_receive_count` times."""

    target_arn: str
    max_receive_count: int

    def rendered(self) -> str:
        policy = {
            "deadLetterTargetArn": self.target_arn,
            "maxReceiveCount": self.max_receive_count,
        }
        return msgspec.json.encode(policy).decode()


class Permission(Enum):
    """Who may name a queue as dead-letter queue."""

    ALLOW_ALL = "allowAll"
    DENY_ALL = "denyAll"
    BY_QUEUE = "byQueue"


class RedriveAllowPolicy(msgspec.Struct, frozen=True):
    """Which queues may send their dead letters here, and take them back."""

    permission: Permission
    source_arns: tuple[str, ...] = ()

    def allows(self, source_arn: str) -> bool:
        match self.permission:
            case Permission.ALLOW_ALL:
                return True
            case Permission.DENY_ALL:
                return False
            case Permission.BY_QUEUE:
                return source_arn in self.source_arns

    def rendered(self) -> str:
        policy: dict[str, object] = {"redrivePermission": self.permission.value}
        if self.permission is Permission.BY_QUEUE:
            policy["sourceQueueArns"] = self.source_arns
        return msgspec.json.encode(policy).decode()


def parsed_redrive(text: str) -> RedrivePolicy | None:
    """None for the empty string, which takes the policy away. Raises AwsError."""
    if not text:
        return None
    policy = _json_object(text, "RedrivePolicy")
    target, count = policy.get("deadLetterTargetArn"), policy.get("maxReceiveCount")
    if not isinstance(target, str) or not target:
        raise _bad(text, "RedrivePolicy", "Redrive policy must contain deadLetterTargetArn.")
    number = _whole_number(count)
    if number is None or not 1 <= number <= MAX_RECEIVE_COUNT_LIMIT:
        reason = f"maxReceiveCount must be an integer between 1 and {MAX_RECEIVE_COUNT_LIMIT}."
        raise _bad(text, "RedrivePolicy", reason)
    return RedrivePolicy(target, number)


def parsed_redrive_allow(text: str) -> RedriveAllowPolicy | None:
    """None for the empty string, which takes the policy away. Raises AwsError."""
    if not text:
        return None
    policy = _json_object(text, "RedriveAllowPolicy")
    try:
        permission = Permission(policy.get("redrivePermission"))
    except ValueError:
        reason = "redrivePermission must be allowAll, denyAll or byQueue."
        raise _bad(text, "RedriveAllowPolicy", reason) from None
    sources = policy.get("sourceQueueArns", [])
    if not isinstance(sources, list) or not all(isinstance(arn, str) for arn in sources):
        raise _bad(text, "RedriveAllowPolicy", "sourceQueueArns must be a list of ARNs.")
    if (permission is Permission.BY_QUEUE) != bool(sources):
        reason = "sourceQueueArns belongs to redrivePermission byQueue, and only to it."
        raise _bad(text, "RedriveAllowPolicy", reason)
    if len(sources) > MAX_SOURCE_QUEUES:
        reason = f"sourceQueueArns can name at most {MAX_SOURCE_QUEUES} queues."
        raise _bad(text, "RedriveAllowPolicy", reason)
    return RedriveAllowPolicy(permission, tuple(sources))


def _json_object(text: str, attribute: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise _bad(text, attribute, "Attribute is not a valid JSON object.") from None


def _whole_number(value: object) -> int | None:
    """SDKs and consoles send the count both as a number and as text."""
    match value:
        case bool():
            return None
        case int():
            return value
        case str() if value.isascii() and value.isdigit():
            return int(value)
        case _:
            return None


def _bad(text: str, attribute: str, reason: str) -> AwsError:
    return invalid_parameter_value(text, attribute, reason)
