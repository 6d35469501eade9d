"""A topic and its attributes."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from outboxd.localaws.errors import AwsError
from outboxd.localaws.recent import Recent
from outboxd.localaws.sns.errors import invalid_parameter, unsupported
from outboxd.localaws.sqs.arns import ACCOUNT
from outboxd.localaws.sqs.fifo import DEDUPLICATION_SECONDS

DEFAULT_MESSAGE_BYTES = 262_144
MAX_MESSAGE_BYTES = 1_048_576

DEFAULTS: Mapping[str, str] = {
    "FifoThroughputScope": "Topic",
    "SignatureVersion": "1",
    "TracingConfig": "PassThrough",
    "MaximumMessageSize": str(DEFAULT_MESSAGE_BYTES),
}
"""What an attribute is that was never set, and that is told only once it was."""

_STORED = frozenset(
    {"DisplayName", "Policy", "DeliveryPolicy", "KmsMasterKeyId", "SignatureVersion"}
    | {"TracingConfig", "MaximumMessageSize"}
)
_FIFO_ONLY = frozenset({"ContentBasedDeduplication", "FifoThroughputScope"})
_FEEDBACK = ("FeedbackRoleArn", "FeedbackSampleRate")
_TRUTHS = ("true", "false")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "ContentBasedDeduplication": _TRUTHS,
    "FifoThroughputScope": ("Topic", "MessageGroup"),
    "SignatureVersion": ("1", "2"),
    "TracingConfig": ("PassThrough", "Active"),
}


class Accepted(NamedTuple):
    """What the first publish with a deduplication id was told; repeats are told the same."""

    message_id: str
    sequence: str


class Topic:
    """A name to publish to; `attributes` are those that were set, as they were written."""

    def __init__(self, region: str, name: str, arn: str, attributes: dict[str, str]) -> None:
        self.region = region
        self.name = name
        self.arn = arn
        self.attributes = attributes
        self.tags: dict[str, str] = {}
        self._accepted: Recent[tuple[str, str], Accepted] = Recent(DEDUPLICATION_SECONDS)

    @property
    def fifo(self) -> bool:
        return self.attributes.get("FifoTopic") == "true"

    @property
    def content_based_deduplication(self) -> bool:
        return self.attributes.get("ContentBasedDeduplication") == "true"

    @property
    def maximum_message_bytes(self) -> int:
        return int(self.attributes.get("MaximumMessageSize", DEFAULT_MESSAGE_BYTES))

    @property
    def signature_version(self) -> str:
        return self.attributes.get("SignatureVersion", "1")

    def accepted_before(self, group: str, deduplication_id: str, now: float) -> Accepted | None:
        """What a publish with this id was told within the last five minutes."""
        return self._accepted.get(self._scope(group, deduplication_id), now)

    def remember(self, group: str, deduplication_id: str, accepted: Accepted, now: float) -> None:
        self._accepted.put(self._scope(group, deduplication_id), accepted, now)

    def set(self, name: str, value: str) -> None:
        """Raises AwsError, also for what localaws cannot do."""
        check_attribute(name, value, fifo=self.fifo)
        self.attributes[name] = value

    def _scope(self, group: str, deduplication_id: str) -> tuple[str, str]:
        per_group = self.attributes.get("FifoThroughputScope") == "MessageGroup"
        return (group if per_group else "", deduplication_id)


def created_attributes(asked: Mapping[str, str]) -> dict[str, str]:
    """The attributes of a new topic. Raises AwsError."""
    fifo_text = asked.get("FifoTopic", "false")
    if fifo_text not in _TRUTHS:
        raise _bad("FifoTopic", fifo_text)
    fifo = fifo_text == "true"
    for name, value in asked.items():
        if name != "FifoTopic":
            check_attribute(name, value, fifo=fifo)
    attributes = dict(asked)
    if fifo:
        attributes.setdefault("ContentBasedDeduplication", "false")
    else:
        attributes.pop("FifoTopic", None)
    return attributes


def check_attribute(name: str, value: str, *, fifo: bool) -> None:
    """Raises AwsError."""
    if name in ("ArchivePolicy", "DataProtectionPolicy"):
        raise unsupported(f"keeps no archive and protects no data: it has no {name}.")
    if name.endswith(_FEEDBACK):
        return
    if name not in _STORED and name not in _FIFO_ONLY:
        raise invalid_parameter("AttributeName")
    if name in _FIFO_ONLY and not fifo:
        raise invalid_parameter(f"{name} Reason: only a FIFO topic has this attribute")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise _bad(name, value)
    if name in ("Policy", "DeliveryPolicy") and value:
        _check_json(name, value)
    if name == "MaximumMessageSize" and not _is_size(value):
        raise _bad(name, value)


def described(topic: Topic, subscriptions: int) -> dict[str, str]:
    """The attributes as GetTopicAttributes reports them."""
    return {
        "TopicArn": topic.arn,
        "Owner": ACCOUNT,
        "DisplayName": "",
        "Policy": _default_policy(topic.arn),
        "EffectiveDeliveryPolicy": _DELIVERY_POLICY,
        "SubscriptionsConfirmed": str(subscriptions),
        "SubscriptionsPending": "0",
        "SubscriptionsDeleted": "0",
        **topic.attributes,
    }


def _is_size(value: str) -> bool:
    return value.isascii() and value.isdigit() and 1024 <= int(value) <= MAX_MESSAGE_BYTES


def _check_json(name: str, value: str) -> None:
    try:
        msgspec.json.decode(value, type=dict[str, Any])
    except msgspec.DecodeError:
        raise invalid_parameter(f"{name} Reason: not a JSON object") from None


def _bad(name: str, value: str) -> AwsError:
    return invalid_parameter(f"Attributes Reason: Invalid value [{value}] for attribute {name}")


_JSON: Callable[[object], bytes] = msgspec.json.encode

_DELIVERY_POLICY = _JSON(
    {
        "http": {
            "defaultHealthyRetryPolicy": {
                "minDelayTarget": 20,
                "maxDelayTarget": 20,
                "numRetries": 3,
                "numMaxDelayRetries": 0,
                "numNoDelayRetries": 0,
                "numMinDelayRetries": 0,
                "backoffFunction": "linear",
            },
            "disableSubscriptionOverrides": False,
        }
    }
).decode()


def _default_policy(arn: str) -> str:
    statement = {
        "Sid": "__default_statement_ID",
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["SNS:Publish", "SNS:Subscribe", "SNS:GetTopicAttributes"],
        "Resource": arn,
        "Condition": {"StringEquals": {"AWS:SourceOwner": ACCOUNT}},
    }
    policy = {"Version": "2008-10-17", "Id": "__default_policy_ID", "Statement": [statement]}
    return _JSON(policy).decode()
