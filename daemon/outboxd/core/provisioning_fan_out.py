"""The topics, buses and what hangs on them, as the configuration wants them."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from outboxd.core.destinations import SnsTarget, target_of, topic_of
from outboxd.core.event_patterns import conditions
from outboxd.core.settings import (
    EventBridgeSettings,
    RuleSettings,
    Settings,
    SubscriptionSettings,
    is_fifo,
)

DEFAULT_BUS = "default"
"""Every account has it, and nobody creates it."""

CREATED_WITH = {"FifoTopic": "true", "FifoThroughputScope": "MessageGroup"}
"""What a new FIFO topic is given: as with queues, the throughput limit of each message group
instead of one for the topic, since the ids of events are unique everywhere."""

LONGEST_TARGET_ID = 64


class WantedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """One with an `arn` is somebody else's: it is subscribed to, and never created."""

    name: str
    arn: str | None = None

    @property
    def created_with(self) -> dict[str, str]:
        return CREATED_WITH if is_fifo(self.name) else {}


class WantedSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A queue on a topic, both by their names in AWS. What SNS cannot deliver, since the queue or
    its policy is gone, goes to the queue's own dead-letter queue; but to none if that is not of the
    topic's type, since SNS refuses it then."""

    topic: str
    queue: str
    dead_letter: str | None
    raw: bool
    filter_policy: str
    """JSON with its keys in order; "{}" lets everything through."""
    filter_scope: str

    @property
    def name(self) -> str:
        return f"{self.topic} -> {self.queue}"


class WantedBus(msgspec.Struct, frozen=True, kw_only=True):
    name: str


class WantedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with its targets: for each queue, the dead-letter queue of what cannot be delivered,
    all by their names in SQS."""

    bus: str
    rule: str
    pattern: str
    targets: dict[str, str]

    @property
    def name(self) -> str:
        """What stands behind `rule/` in its ARN."""
        return self.rule if self.bus == DEFAULT_BUS else f"{self.bus}/{self.rule}"


class WantedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Who may send to a queue: topics and rules, by their names."""

    queue: str
    topics: frozenset[str]
    rules: frozenset[str]

    @property
    def name(self) -> str:
        return self.queue


class FanOut(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, each kind in the order of the file."""

    topics: tuple[WantedTopic, ...]
    subscriptions: tuple[WantedSubscription, ...]
    buses: tuple[WantedBus, ...]
    rules: tuple[WantedRule, ...]

    @property
    def policies(self) -> tuple[WantedPolicy, ...]:
        """Every queue that is sent to, dead-letter queues included."""
        topics: dict[str, set[str]] = {}
        rules: dict[str, set[str]] = {}
        for subscription in self.subscriptions:
            for queue in (subscription.queue, subscription.dead_letter):
                if queue is not None:
                    topics.setdefault(queue, set()).add(subscription.topic)
        for rule in self.rules:
            for pair in rule.targets.items():
                for queue in pair:
                    rules.setdefault(queue, set()).add(rule.name)
        return tuple(
            WantedPolicy(
                queue=queue,
                topics=frozenset(topics.get(queue, ())),
                rules=frozenset(rules.get(queue, ())),
            )
            for queue in dict.fromkeys([*topics, *rules])
        )


def wanted_fan_out(settings: Settings) -> FanOut:
    """What the tables of [destinations] and the routes ask for; a topic or a bus that only a route
    names is wanted too."""
    sns, buses = settings.destinations.sns, settings.destinations.eventbridge
    return FanOut(
        topics=tuple(_topics(settings)),
        subscriptions=tuple(
            _subscription(settings, topic_of(name, topic).topic_name, subscription)
            for name, topic in sns.items()
            for subscription in topic.subscriptions
        ),
        buses=tuple(
            WantedBus(name=name)
            for name in dict.fromkeys(bus.bus_name or name for name, bus in buses.items())
            if name != DEFAULT_BUS
        ),
        rules=tuple(
            _rule(settings, bus.bus_name or name, bus, rule)
            for name, bus in buses.items()
            for rule in bus.rules
        ),
    )


def type_key(subscription: SubscriptionSettings) -> str:
    """Where a filter policy finds the type of an event: every envelope has it in its body, too."""
    return "event_type" if subscription.filter_scope == "attributes" else "type"


def target_id(queue: str) -> str:
    """The id of a queue as a rule's target: its name, unless that is too long for one."""
    if len(queue) <= LONGEST_TARGET_ID:
        return queue
    return hashlib.sha256(queue.encode()).hexdigest()[:LONGEST_TARGET_ID]


def canonical(document: Any) -> str:
    """JSON that is the same text for the same content, so that texts can be compared."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _topics(settings: Settings) -> Iterator[WantedTopic]:
    routes = settings.relay.routes if settings.relay is not None else ()
    routed = dict.fromkeys(
        target
        for route in routes
        for destination in route.to
        if isinstance(target := target_of(destination, settings), SnsTarget)
    )
    tables = [
        topic_of(name, topic)
        for name, topic in settings.destinations.sns.items()
        if topic.arn is None or topic.subscriptions
    ]
    foreign = [target for target in routed if target.arn is not None and target not in tables]
    seen: set[str] = set()
    for target in [*tables, *routed]:
        if target.topic_name not in seen and target not in foreign:
            seen.add(target.topic_name)
            yield WantedTopic(name=target.topic_name, arn=target.arn)


def _subscription(
    settings: Settings, topic: str, subscription: SubscriptionSettings
) -> WantedSubscription:
    policy: dict[str, Any] = json.loads(subscription.filter) if subscription.filter else {}
    if (chosen := conditions(subscription.events, wildcards=False)) is not None:
        policy[type_key(subscription)] = chosen
    scopes = {"attributes": "MessageAttributes", "body": "MessageBody"}
    letters = settings.dead_letter_name(subscription.queue)
    return WantedSubscription(
        topic=topic,
        queue=settings.sqs_queue_name(subscription.queue),
        dead_letter=letters if is_fifo(letters) == is_fifo(topic) else None,
        raw=subscription.raw,
        filter_policy=canonical(policy),
        filter_scope=scopes[subscription.filter_scope],
    )


def _rule(
    settings: Settings, bus_name: str, bus: EventBridgeSettings, rule: RuleSettings
) -> WantedRule:
    pattern: dict[str, Any] = {"source": [bus.source]}
    if (chosen := conditions(rule.events, wildcards=True)) is not None:
        pattern["detail-type"] = chosen
    queues = [target.removeprefix("sqs:") for target in rule.to]
    return WantedRule(
        bus=bus_name,
        rule=rule.name,
        pattern=canonical(pattern),
        targets={
            settings.sqs_queue_name(queue): settings.dead_letter_name(queue) for queue in queues
        },
    )
