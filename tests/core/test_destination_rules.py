"""Topics and buses that could not work are refused, with what would go wrong."""

from typing import Any

import pytest

from outboxd.core.destination_rules import destination_problems
from outboxd.core.queue_rules import queue_problems
from outboxd.core.settings import (
    AwsSettings,
    DestinationsSettings,
    EventBridgeSettings,
    QueueSettings,
    RuleSettings,
    Settings,
    SnsSettings,
    SubscriptionSettings,
)

ARN = "arn:aws:sns:eu-west-1:111122223333:orders"
QUEUES = {"orders": QueueSettings(), "ordered": QueueSettings(queue_name="ordered.fifo")}


def with_topics(**topics: SnsSettings) -> Settings:
    return Settings(queues=QUEUES, destinations=DestinationsSettings(sns=dict(topics)))


def subscribed(topic_name: str = "orders", **subscription: Any) -> Settings:
    values = {"queue": "orders", **subscription}
    topic = SnsSettings(topic_name=topic_name, subscriptions=(SubscriptionSettings(**values),))
    return with_topics(topic=topic)


def ruled(*rules: RuleSettings) -> Settings:
    bus = EventBridgeSettings(source="shop", rules=rules)
    return Settings(queues=QUEUES, destinations=DestinationsSettings(eventbridge={"shop": bus}))


def rule(*to: str, name: str = "all", events: tuple[str, ...] = ("*",)) -> RuleSettings:
    return RuleSettings(name=name, to=to or ("sqs:orders",), events=events)


GOOD = [
    subscribed(events=("order.*", "*.paid")),
    subscribed(filter='{"event_type": ["order.placed"]}'),
    subscribed(events=("order.*",), filter='{"aggregate_id": ["1"]}'),
    subscribed("orders.fifo", queue="ordered"),
    subscribed("orders.fifo", queue="orders"),
    ruled(rule(events=("order.*.done",)), rule("sqs:orders", name="other")),
    Settings(
        aws=AwsSettings(region="eu-west-1"),
        destinations=DestinationsSettings(sns={"theirs": SnsSettings(arn=ARN)}),
    ),
]


@pytest.mark.parametrize("settings", GOOD)
def test_good_destinations_have_no_problem(settings: Settings) -> None:
    assert list(destination_problems(settings)) == []


BAD = [
    (
        with_topics(a=SnsSettings(arn=ARN)),
        "[destinations.sns.a] arn:",
        "in eu-west-1, but [aws] region is us-east-1",
    ),
    (
        with_topics(a=SnsSettings(arn=ARN.replace("eu-west", "us-east"), topic_name="b")),
        "[destinations.sns.a] arn:",
        "is of another topic than topic_name",
    ),
    (
        with_topics(a=SnsSettings(topic_name="x"), b=SnsSettings(topic_name="x")),
        "[destinations.sns.b]:",
        "is the topic of [destinations.sns.a] again",
    ),
    (
        with_topics(a=SnsSettings(topic_name="a.fifo", fair_groups=True)),
        "[destinations.sns.a] fair_groups:",
        "has message groups anyway",
    ),
    (
        subscribed(queue="ordres"),
        "[[destinations.sns.topic.subscriptions]] #1 queue:",
        'there is no [queues.ordres]; did you mean "orders"?',
    ),
    (
        subscribed(queue="ordered"),
        "[[destinations.sns.topic.subscriptions]] #1 queue:",
        "from FIFO topics only",
    ),
    (
        subscribed(events=("a.*.b",)),
        "[[destinations.sns.topic.subscriptions]] #1 events:",
        "at the beginning or at the end only",
    ),
    (
        subscribed(events=("a",), filter='{"event_type": ["b"]}'),
        "[[destinations.sns.topic.subscriptions]] #1 filter:",
        'asks for "event_type" as events does',
    ),
    (
        subscribed(events=("a",), filter='{"type": ["b"]}', filter_scope="body"),
        "[[destinations.sns.topic.subscriptions]] #1 filter:",
        'asks for "type" as events does',
    ),
    (
        subscribed(filter="{]"),
        "[[destinations.sns.topic.subscriptions]] #1 filter:",
        "is no JSON",
    ),
    (
        subscribed(filter="[]"),
        "[[destinations.sns.topic.subscriptions]] #1 filter:",
        "expected a JSON object",
    ),
    (
        with_topics(a=SnsSettings(subscriptions=(SubscriptionSettings(queue="orders"),) * 2)),
        "[[destinations.sns.a.subscriptions]] #2 queue:",
        "is subscribed above",
    ),
    (
        ruled(rule(), rule()),
        "[[destinations.eventbridge.shop.rules]] #2 (all) name:",
        "the bus has a rule",
    ),
    (
        ruled(rule("sns:orders")),
        "[[destinations.eventbridge.shop.rules]] #1 (all) to:",
        'a rule sends to "sqs:<a table of [queues]>" only',
    ),
    (
        ruled(rule("sqs:ordres")),
        "[[destinations.eventbridge.shop.rules]] #1 (all) to:",
        'did you mean "orders"?',
    ),
    (
        ruled(rule("sqs:ordered")),
        "[[destinations.eventbridge.shop.rules]] #1 (all) to:",
        "keeps no order",
    ),
    (
        ruled(rule("sqs:orders", "sqs:orders")),
        "[[destinations.eventbridge.shop.rules]] #1 (all) to:",
        "twice",
    ),
    (
        ruled(rule(events=("a?",))),
        "[[destinations.eventbridge.shop.rules]] #1 (all) events:",
        "AWS matches by *",
    ),
]


@pytest.mark.parametrize(("settings", "place", "words"), BAD)
def test_what_cannot_work_is_told_where_it_stands(
    settings: Settings, place: str, words: str
) -> None:
    (problem,) = destination_problems(settings)

    assert problem.startswith(place)
    assert words in problem


def test_a_queue_behind_a_topic_or_a_rule_needs_no_handlers() -> None:
    for settings in (subscribed(), ruled(rule())):
        problems = [each for each in queue_problems(settings) if "[queues.orders]" in each]
        assert problems == []
