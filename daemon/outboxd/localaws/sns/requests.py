"""The requests of SNS, as they are decoded from the JSON that a form becomes.

Every value of a form is text, so there is no other scalar here; absent and empty are alike.
"""

import msgspec

from outboxd.localaws.sqs.message import AttributeValue


class _Wire(msgspec.Struct, frozen=True, rename="pascal", gc=False):
    pass


class Tag(_Wire, frozen=True):
    key: str
    value: str


class CreateTopic(_Wire, frozen=True):
    name: str = ""
    attributes: dict[str, str] = {}
    tags: list[Tag] = []


class TopicOnly(_Wire, frozen=True):
    """DeleteTopic, GetTopicAttributes."""

    topic_arn: str = ""


class ListAll(_Wire, frozen=True):
    """ListTopics, ListSubscriptions."""

    next_token: str | None = None


class ListSubscriptionsByTopic(_Wire, frozen=True):
    topic_arn: str = ""
    next_token: str | None = None


class SetTopicAttributes(_Wire, frozen=True):
    topic_arn: str = ""
    attribute_name: str = ""
    attribute_value: str = ""


class Subscribe(_Wire, frozen=True):
    topic_arn: str = ""
    protocol: str = ""
    endpoint: str = ""
    attributes: dict[str, str] = {}
    return_subscription_arn: str = "false"


class SubscriptionOnly(_Wire, frozen=True):
    """Unsubscribe, GetSubscriptionAttributes."""

    subscription_arn: str = ""


class SetSubscriptionAttributes(_Wire, frozen=True):
    subscription_arn: str = ""
    attribute_name: str = ""
    attribute_value: str = ""


class Outgoing(_Wire, frozen=True):
    """What is published: the members that Publish and a batch entry share."""

    message: str = ""
    subject: str | None = None
    message_structure: str = ""
    message_attributes: dict[str, AttributeValue] = {}
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class Publish(Outgoing, frozen=True):
    topic_arn: str = ""
    target_arn: str = ""
    phone_number: str = ""


class PublishEntry(Outgoing, frozen=True):
    id: str = ""


class PublishBatch(_Wire, frozen=True):
    topic_arn: str = ""
    entries: list[PublishEntry] = msgspec.field(
        name="PublishBatchRequestEntries", default_factory=list
    )
