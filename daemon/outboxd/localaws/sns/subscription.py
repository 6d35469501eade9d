"""A subscription of a queue to a topic, and its attributes."""

from typing import Any

import msgspec

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sns.errors import invalid_parameter, unsupported
from outboxd.localaws.sns.filtering import BY_ATTRIBUTES, BY_BODY, FilterPolicy, parsed
from outboxd.localaws.sns.topic import Topic
from outboxd.localaws.sqs.arns import ACCOUNT, parsed_arn

PROTOCOL = "sqs"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set on a subscription; frozen, a change makes a new one."""

    raw: bool = False
    filter_text: str = ""
    filter_scope: str = BY_ATTRIBUTES
    filter_policy: FilterPolicy | None = None
    redrive_text: str = ""
    dead_letter_arn: str | None = None


class Subscription(msgspec.Struct, kw_only=True):
    """`endpoint` is the ARN of a queue; whether there is one is found out by each delivery."""

    arn: str
    topic: Topic
    endpoint: str
    settings: Settings


def created(attributes: dict[str, str], topic: Topic) -> Settings:
    """The settings of a new subscription. Raises AwsError."""
    settings = Settings()
    # The scope first, so that the policy is judged by it.
    for name in sorted(attributes, key=lambda name: name != "FilterPolicyScope"):
        settings = changed(settings, name, attributes[name], topic)
    return settings


def changed(settings: Settings, name: str, value: str, topic: Topic) -> Settings:
    """The settings with one attribute set. Raises AwsError."""
    match name:
        case "RawMessageDelivery":
            return msgspec.structs.replace(settings, raw=_truth(name, value))
        case "FilterPolicy":
            return _filtered(settings, value, settings.filter_scope)
        case "FilterPolicyScope":
            if value not in (BY_ATTRIBUTES, BY_BODY):
                raise _bad(
                    f"FilterPolicyScope: Invalid value [{value}]. Please use either "
                    f"{BY_ATTRIBUTES} or {BY_BODY}"
                )
            return _filtered(settings, settings.filter_text, value)
        case "RedrivePolicy":
            arn = _dead_letter_arn(value, topic) if value else None
            return msgspec.structs.replace(settings, redrive_text=value, dead_letter_arn=arn)
        case "ReplayPolicy" | "SubscriptionRoleArn" | "DeliveryPolicy":
            raise unsupported(f"delivers to queues at once and keeps no archive: no {name}.")
        case _:
            raise invalid_parameter("AttributeName")


def described(subscription: Subscription) -> dict[str, str]:
    """The attributes as GetSubscriptionAttributes reports them."""
    settings = subscription.settings
    texts = {
        "SubscriptionArn": subscription.arn,
        "TopicArn": subscription.topic.arn,
        "Protocol": PROTOCOL,
        "Endpoint": subscription.endpoint,
        "Owner": ACCOUNT,
        "SubscriptionPrincipal": f"arn:aws:iam::{ACCOUNT}:user/test",
        "ConfirmationWasAuthenticated": "true",
        "PendingConfirmation": "false",
        "RawMessageDelivery": "true" if settings.raw else "false",
    }
    if settings.filter_policy is not None:
        texts["FilterPolicy"] = settings.filter_text
        texts["FilterPolicyScope"] = settings.filter_scope
    if settings.redrive_text:
        texts["RedrivePolicy"] = settings.redrive_text
    return texts


def _filtered(settings: Settings, text: str, scope: str) -> Settings:
    return msgspec.structs.replace(
        settings, filter_text=text, filter_scope=scope, filter_policy=parsed(text, scope)
    )


def _truth(name: str, value: str) -> bool:
    match value.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise _bad(f"{name}: Invalid value [{value}]. Must be true or false.")


def _dead_letter_arn(text: str, topic: Topic) -> str:
    try:
        policy = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise invalid_parameter("RedrivePolicy: failed to parse JSON.") from None
    arn = policy.get("deadLetterTargetArn")
    place = parsed_arn(arn) if isinstance(arn, str) else None
    if not isinstance(arn, str) or place is None:
        raise invalid_parameter("RedrivePolicy: deadLetterTargetArn is an invalid arn")
    if topic.fifo != place[1].endswith(".fifo"):
        raise invalid_parameter(
            "RedrivePolicy: must use a dead-letter queue of the same type as the topic"
        )
    return arn


def _bad(reason: str) -> AwsError:
    return invalid_parameter(f"Attributes Reason: {reason}")
