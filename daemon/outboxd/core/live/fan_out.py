"""What SNS and EventBridge say of the configured topics, subscriptions, buses and rules."""

from collections.abc import Iterator, Mapping

from outboxd.core.live.facts import Absent, Attributes, AwsFacts, Unanswered
from outboxd.core.live.finding import Code, Finding
from outboxd.core.live.policies import Admission, admission
from outboxd.core.provisioning import TypeConflict
from outboxd.core.provisioning_fan_out import (
    DEFAULT_BUS,
    FanOut,
    WantedPolicy,
    WantedRule,
    WantedSubscription,
    WantedTopic,
)
from outboxd.core.provisioning_steps import Existing, ExistingRule, FanOutStep, Item, plan_fan_out
from outboxd.core.queue_policies import rule_arn

_PROVISION = "run `outboxd provision`"


def fan_out_findings(wanted: FanOut, facts: AwsFacts) -> Iterator[Finding]:
    """In the order of the roads: topics and buses, who may send to queues, what is delivered."""
    for topic in wanted.topics:
        yield from _topic(topic, facts.topics.get(topic.name))
    for bus in wanted.buses:
        if facts.buses.get(bus.name) is False:
            yield Finding(
                Code.BUS_MISSING,
                f"event bus {bus.name}",
                "there is no bus of this name in this account and region",
                "EventBridge accepts events for a missing bus and drops them, so the relay sends "
                "none until there is one",
                _PROVISION,
            )
    for policy in wanted.policies:
        yield from _policy(policy, facts)
    for subscription in wanted.subscriptions:
        there = facts.subscriptions.get((subscription.topic, subscription.queue))
        yield from _subscription(subscription, there)
    for rule in wanted.rules:
        yield from _rule(rule, facts.rules.get((rule.bus, rule.rule)))


def _topic(topic: WantedTopic, there: Attributes | Absent | Unanswered | None) -> Iterator[Finding]:
    match there:
        case Absent():
            yield Finding(
                Code.TOPIC_MISSING,
                f"topic {topic.name}",
                "there is no such topic"
                + (f" ({topic.arn})" if topic.arn else " in this account and region"),
                "what is published to it waits in the outbox",
                "ask its owner" if topic.arn else _PROVISION,
            )
        case Mapping():
            try:
                plan_fan_out(_only(topics=(topic,)), Existing(topics={topic.name: there}))
            except TypeConflict as conflict:
                yield Finding(
                    Code.TOPIC_TYPE,
                    f"topic {topic.name}",
                    str(conflict).partition(";")[0],
                    "order would be lost, or publishing refused",
                    "a topic cannot change its type: delete it, or use another name",
                )
        case _:
            pass


def _subscription(
    wanted: WantedSubscription, there: Attributes | Absent | Unanswered | None
) -> Iterator[Finding]:
    subject = f"subscription {wanted.name}"
    match there:
        case Absent():
            yield Finding(
                Code.SUBSCRIPTION_MISSING,
                subject,
                "the topic does not deliver to the queue",
                "what is published to the topic never arrives, and nobody is told",
                _PROVISION,
            )
        case Mapping() if there.get("PendingConfirmation") == "true":
            yield Finding(
                Code.SUBSCRIPTION_PENDING,
                subject,
                "it waits for a confirmation",
                "SNS delivers nothing, and forgets it after two days",
                "confirm it as the queue's owner, or subscribe from the queue's account",
            )
        case Mapping():
            existing = Existing(subscriptions={(wanted.topic, wanted.queue): there})
            for step in _steps(_only(subscriptions=(wanted,)), existing):
                yield from _drift(step, Code.SUBSCRIPTION_DRIFT, subject)
        case _:
            pass


def _rule(
    wanted: WantedRule, there: ExistingRule | Absent | Unanswered | None
) -> Iterator[Finding]:
    subject = f"rule {wanted.name}"
    match there:
        case Absent():
            yield Finding(
                Code.RULE_MISSING,
                subject,
                "there is no such rule",
                f"events for {', '.join(wanted.targets)} are dropped by the bus, without a trace",
                _PROVISION,
            )
        case ExistingRule():
            if not there.enabled:
                yield Finding(
                    Code.RULE_DISABLED,
                    subject,
                    "it is disabled",
                    "the bus drops what it should deliver, without a trace",
                    f"aws events enable-rule --name {wanted.rule} --event-bus-name {wanted.bus}",
                )
            for queue in sorted(wanted.targets.keys() - there.targets.keys()):
                yield Finding(
                    Code.RULE_TARGET,
                    subject,
                    f"{queue} is none of its targets",
                    "what should arrive there is dropped by the bus, without a trace",
                    _PROVISION,
                )
            existing = Existing(rules={(wanted.bus, wanted.rule): there})
            for step in _steps(_only(rules=(wanted,)), existing):
                yield from _drift(step, Code.RULE_DRIFT, subject)
        case _:
            pass


def _steps(wanted: FanOut, existing: Existing) -> tuple[FanOutStep, ...]:
    """What differs; nothing of what a server that is not AWS writes instead of JSON."""
    try:
        return plan_fan_out(wanted, existing)
    except ValueError:
        return ()


def _drift(step: FanOutStep, code: Code, subject: str) -> Iterator[Finding]:
    if step.item is Item.POLICY:
        return
    for change in step.changes:
        if change.attribute == "target":
            continue
        letters = change.attribute.startswith("dead letters")
        yield Finding(
            code,
            subject,
            f"its {change.attribute}: {change.old or 'none'}, configured: {change.new}",
            "what cannot be delivered is lost, or kept where nobody looks"
            if letters
            else "other events are delivered than the configuration says, or in another form",
            f"{_PROVISION}, which corrects it",
        )


def _policy(policy: WantedPolicy, facts: AwsFacts) -> Iterator[Finding]:
    attributes = facts.queues.get(policy.queue)
    if not isinstance(attributes, Mapping):
        return
    arn = attributes.get("QueueArn", "")
    for service, sources in (
        ("sns.amazonaws.com", _topic_arns(policy, facts)),
        ("events.amazonaws.com", _rule_arns(policy, arn)),
    ):
        for source in sorted(sources):
            verdict = admission(attributes.get("Policy"), service=service, source=source, queue=arn)
            match verdict:
                case Admission.NO:
                    yield Finding(
                        Code.QUEUE_CLOSED,
                        f"queue {policy.queue}",
                        f"its policy does not let {source} send",
                        "nothing arrives from there: it is dropped, or ends in a dead-letter queue",
                        _PROVISION,
                    )
                case Admission.UNCLEAR:
                    yield Finding(
                        Code.QUEUE_POLICY_UNCLEAR,
                        f"queue {policy.queue}",
                        f"whether its policy lets {source} send depends on conditions that are "
                        "not understood here",
                        "perhaps nothing arrives from there",
                        "send an event through and see",
                    )
                case Admission.YES:
                    pass


def _topic_arns(policy: WantedPolicy, facts: AwsFacts) -> set[str]:
    """Of those that there are."""
    return {
        attributes["TopicArn"]
        for name in policy.topics
        if isinstance(attributes := facts.topics.get(name), Mapping) and "TopicArn" in attributes
    }


def _rule_arns(policy: WantedPolicy, queue_arn: str) -> set[str]:
    """Rules are of the queue's account and region: the names in the configuration are."""
    parts = queue_arn.split(":")
    if len(parts) != 6:
        return set()
    bus = ":".join([*parts[:2], "events", *parts[3:5], f"event-bus/{DEFAULT_BUS}"])
    return {rule_arn(bus, name) for name in policy.rules}


def _only(
    topics: tuple[WantedTopic, ...] = (),
    subscriptions: tuple[WantedSubscription, ...] = (),
    rules: tuple[WantedRule, ...] = (),
) -> FanOut:
    return FanOut(topics=topics, subscriptions=subscriptions, buses=(), rules=rules)
