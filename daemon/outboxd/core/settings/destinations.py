"""[destinations]: topics and buses."""

from typing import Annotated, Literal

from msgspec import Meta, field

from outboxd.core.settings.kinds import EventGlob
from outboxd.core.settings.section import Section

TopicName = Annotated[
    str,
    Meta(
        pattern=r"^(?:[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo)\Z",
        description="a topic name of 1 to 256 letters, digits, hyphens and underscores",
    ),
]
TopicArn = Annotated[
    str,
    Meta(
        pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}(?:\.fifo)?\Z",
        description='the ARN of an SNS topic, as "arn:aws:sns:us-east-1:111122223333:orders"',
    ),
]
BusName = Annotated[
    str,
    Meta(
        pattern=r"^[/._A-Za-z0-9-]{1,256}\Z",
        description="a bus name of 1 to 256 letters, digits and any of . / _ -",
    ),
]
RuleName = Annotated[
    str,
    Meta(
        pattern=r"^[._A-Za-z0-9-]{1,64}\Z",
        description="a rule name of 1 to 64 letters, digits and any of . _ -",
    ),
]
EventSource = Annotated[
    str,
    Meta(
        pattern=r"^(?!aws\.)[A-Za-z0-9._/:-]{1,256}\Z",
        description="an event source of 1 to 256 letters, digits and any of . _ / : -, which does "
        'not begin with "aws."',
    ),
]


class SubscriptionSettings(Section, frozen=True, kw_only=True):
    """A queue that a topic is to be fanned out to: all events, or those that a glob of `events`
    matches and that the filter policy in `filter` lets through."""

    queue: str
    raw: bool = True
    events: Annotated[tuple[EventGlob, ...], Meta(max_length=100)] = ()
    filter: Annotated[str, Meta(min_length=2, max_length=256_000)] | None = None
    filter_scope: Literal["attributes", "body"] = "attributes"


class SnsSettings(Section, frozen=True, kw_only=True):
    """A topic, by the name of its table unless another name or an ARN is given."""

    topic_name: TopicName | None = None
    arn: TopicArn | None = None
    fair_groups: bool = False
    subscriptions: tuple[SubscriptionSettings, ...] = ()


class RuleSettings(Section, frozen=True, kw_only=True):
    """A rule that `outboxd provision` puts on the bus: what matches a glob goes to each queue of
    `to`."""

    name: RuleName
    to: Annotated[tuple[str, ...], Meta(min_length=1, max_length=5)]
    events: Annotated[tuple[EventGlob, ...], Meta(min_length=1, max_length=100)] = ("*",)


class EventBridgeSettings(Section, frozen=True, kw_only=True):
    """A bus, by the name of its table unless another name is given, and what events on it say of
    where they come from."""

    source: EventSource
    bus_name: BusName | None = None
    rules: tuple[RuleSettings, ...] = ()


class DestinationsSettings(Section, frozen=True, kw_only=True):
    """Where else than to queues events are published to."""

    sns: dict[TopicName, SnsSettings] = field(default_factory=dict)
    eventbridge: dict[BusName, EventBridgeSettings] = field(default_factory=dict)
