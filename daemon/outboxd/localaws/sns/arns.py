"""ARNs of topics and subscriptions."""

from typing import NamedTuple

from outboxd.localaws.sns.errors import invalid_parameter
from outboxd.localaws.sqs.arns import ACCOUNT

_ELEMENTS = 6


class TopicPlace(NamedTuple):
    region: str
    name: str


def topic_arn(region: str, name: str) -> str:
    return f"arn:aws:sns:{region}:{ACCOUNT}:{name}"


def topic_place(arn: str, parameter: str = "TopicArn") -> TopicPlace:
    """Where the topic with this ARN is, if there is one. Raises InvalidParameter."""
    parts = arn.split(":")
    if len(parts) < _ELEMENTS:
        raise invalid_parameter(
            f"{parameter} Reason: An ARN must have at least {_ELEMENTS} elements, not {len(parts)}"
        )
    if len(parts) > _ELEMENTS or parts[:3] != ["arn", "aws", "sns"] or not parts[5]:
        raise invalid_parameter(parameter)
    return TopicPlace(parts[3], parts[5])


def topic_name(arn: str) -> str | None:
    """The name in the ARN of a topic or a subscription, None if it is neither."""
    parts = arn.split(":")
    return parts[5] if len(parts) in (_ELEMENTS, _ELEMENTS + 1) and parts[2] == "sns" else None


def check_subscription_arn(arn: str) -> None:
    """Raises InvalidParameter."""
    if not arn:
        raise invalid_parameter("SubscriptionArn Reason: no value for required parameter")
    if len(arn.split(":")) != _ELEMENTS + 1 or topic_name(arn) is None:
        raise invalid_parameter(
            f"SubscriptionArn Reason: An ARN must have at least {_ELEMENTS} elements, "
            "that of a subscription has one more"
        )
