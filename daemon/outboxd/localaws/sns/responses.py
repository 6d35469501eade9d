"""The results of SNS; `query/answering.py` makes XML of them."""

import msgspec


class _Wire(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True, gc=False):
    pass


class TopicArn(_Wire, frozen=True):
    topic_arn: str


class Attributes(_Wire, frozen=True):
    attributes: dict[str, str]


class Topics(_Wire, frozen=True):
    topics: list[TopicArn]
    next_token: str | None = None


class SubscriptionArn(_Wire, frozen=True):
    subscription_arn: str


class SubscriptionEntry(_Wire, frozen=True):
    subscription_arn: str
    owner: str
    protocol: str
    endpoint: str
    topic_arn: str


class Subscriptions(_Wire, frozen=True):
    subscriptions: list[SubscriptionEntry]
    next_token: str | None = None


class Published(_Wire, frozen=True):
    message_id: str
    sequence_number: str | None = None


class PublishedEntry(Published, frozen=True, kw_only=True):
    id: str


class Failed(_Wire, frozen=True):
    id: str
    sender_fault: bool
    code: str
    message: str


class BatchResult(_Wire, frozen=True):
    """Both lists are always there, if need be empty."""

    successful: list[PublishedEntry]
    failed: list[Failed]
