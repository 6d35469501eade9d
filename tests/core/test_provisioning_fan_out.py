"""Topics, buses and what hangs on them are wanted as the configuration says, in names of AWS."""

import json
from typing import Any

import pytest

from outboxd.core.provisioning import Action, Change, TypeConflict
from outboxd.core.provisioning_fan_out import (
    WantedBus,
    WantedTopic,
    target_id,
    wanted_fan_out,
)
from outboxd.core.provisioning_steps import Existing, ExistingRule, Item, plan_fan_out
from outboxd.core.queue_policies import EVENTBRIDGE_STATEMENT, SNS_STATEMENT, admitting
from outboxd.core.settings import (
    DestinationsSettings,
    EventBridgeSettings,
    QueueSettings,
    RelaySettings,
    RouteSettings,
    RuleSettings,
    Settings,
    SnsSettings,
    SubscriptionSettings,
)

QUEUES = {
    "orders": QueueSettings(queue_name="prod-orders"),
    "ordered": QueueSettings(queue_name="ordered.fifo"),
}
ARN = "arn:aws:sns:us-east-1:111122223333:theirs"


def subscribed(*subscriptions: SubscriptionSettings, **topic: Any) -> Settings:
    section = SnsSettings(subscriptions=subscriptions, **topic)
    return Settings(queues=QUEUES, destinations=DestinationsSettings(sns={"topic": section}))


def ruled(*rules: RuleSettings, bus_name: str | None = None) -> Settings:
    bus = EventBridgeSettings(source="shop", bus_name=bus_name, rules=rules)
    return Settings(queues=QUEUES, destinations=DestinationsSettings(eventbridge={"shop": bus}))


def test_a_subscription_is_wanted_with_its_filter_and_dead_letters() -> None:
    settings = subscribed(
        SubscriptionSettings(
            queue="orders", events=("order.*",), filter='{"b": [1], "a": ["é"]}', raw=False
        )
    )

    (subscription,) = wanted_fan_out(settings).subscriptions

    assert (subscription.topic, subscription.queue) == ("topic", "prod-orders")
    assert (subscription.dead_letter, subscription.raw) == ("prod-orders-dlq", False)
    assert subscription.filter_policy == '{"a":["é"],"b":[1],"event_type":[{"prefix":"order."}]}'
    assert subscription.filter_scope == "MessageAttributes"


def test_a_filter_of_bodies_finds_the_type_there() -> None:
    settings = subscribed(SubscriptionSettings(queue="orders", events=("a",), filter_scope="body"))

    (subscription,) = wanted_fan_out(settings).subscriptions

    assert subscription.filter_policy == '{"type":["a"]}'
    assert subscription.filter_scope == "MessageBody"


def test_sns_takes_dead_letter_queues_of_the_topics_own_type_only() -> None:
    settings = subscribed(
        SubscriptionSettings(queue="orders"),
        SubscriptionSettings(queue="ordered"),
        topic_name="topic.fifo",
    )

    letters = [each.dead_letter for each in wanted_fan_out(settings).subscriptions]

    assert letters == [None, "ordered-dlq.fifo"]
    assert sorted(each.queue for each in wanted_fan_out(settings).policies) == [
        "ordered-dlq.fifo",
        "ordered.fifo",
        "prod-orders",
    ]


def test_topics_and_buses_that_only_a_route_names_are_wanted_too() -> None:
    settings = Settings(
        relay=RelaySettings(
            routes=(
                RouteSettings(
                    events="*", to=("sns:plain", "sns:theirs", "eventbridge:own", "log:dev")
                ),
            )
        ),
        destinations=DestinationsSettings(
            sns={"theirs": SnsSettings(arn=ARN)},
            eventbridge={
                "own": EventBridgeSettings(source="shop"),
                "account": EventBridgeSettings(source="shop", bus_name="default"),
            },
        ),
    )

    wanted = wanted_fan_out(settings)

    # Nothing hangs on the topic by ARN, and the default bus is there anyway.
    assert wanted.topics == (WantedTopic(name="plain"),)
    assert wanted.buses == (WantedBus(name="own"),)


def test_a_rule_asks_for_its_source_and_its_types() -> None:
    settings = ruled(
        RuleSettings(name="all", to=("sqs:orders",)),
        RuleSettings(name="some", to=("sqs:orders",), events=("a.*.b", "c")),
    )

    every, some = wanted_fan_out(settings).rules

    assert (every.name, every.pattern) == ("shop/all", '{"source":["shop"]}')
    assert every.targets == {"prod-orders": "prod-orders-dlq"}
    assert json.loads(some.pattern) == {
        "source": ["shop"],
        "detail-type": [{"wildcard": "a.*.b"}, "c"],
    }


def test_rules_of_the_default_bus_do_not_name_it() -> None:
    settings = ruled(RuleSettings(name="all", to=("sqs:orders",)), bus_name="default")

    (rule,) = wanted_fan_out(settings).rules

    assert rule.name == "all"
    assert wanted_fan_out(settings).buses == ()


def test_the_id_of_a_target_is_its_queue_unless_that_is_too_long() -> None:
    assert target_id("q" * 64) == "q" * 64
    assert len(target_id("q" * 80)) == 64
    assert target_id("q" * 80) != target_id("q" * 79 + "p")


BOTH = Settings(
    queues=QUEUES,
    destinations=DestinationsSettings(
        sns={"topic": SnsSettings(subscriptions=(SubscriptionSettings(queue="orders"),))},
        eventbridge={
            "shop": EventBridgeSettings(
                source="shop", rules=(RuleSettings(name="all", to=("sqs:orders",)),)
            )
        },
    ),
)


def test_a_queue_lets_a_topic_and_a_rule_in_before_they_send() -> None:
    steps = plan_fan_out(wanted_fan_out(BOTH), Existing())

    assert [step.item for step in steps] == [
        Item.TOPIC,
        Item.BUS,
        Item.POLICY,
        Item.POLICY,
        Item.SUBSCRIPTION,
        Item.RULE,
    ]
    assert {step.action for step in steps} == {Action.CREATE}


AS_WANTED = Existing(
    topics={"topic": {}},
    subscriptions={
        ("topic", "prod-orders"): {
            "RawMessageDelivery": "true",
            "RedrivePolicy": '{"deadLetterTargetArn": "arn:aws:sqs:r:1:prod-orders-dlq"}',
        }
    },
    buses=frozenset({"shop"}),
    rules={
        ("shop", "all"): ExistingRule(
            pattern='{ "source": ["shop"] }', targets={"prod-orders": "prod-orders-dlq"}
        )
    },
    policies={
        queue: admitting(
            None,
            f"arn:aws:sqs:r:1:{queue}",
            {
                SNS_STATEMENT: ["arn:aws:sns:r:1:topic", "arn:aws:sns:r:1:anothers"],
                EVENTBRIDGE_STATEMENT: ["arn:aws:events:r:1:rule/shop/all"],
            },
        )
        for queue in ("prod-orders", "prod-orders-dlq")
    },
)


def test_what_is_as_wanted_stays_and_so_does_what_others_were_given() -> None:
    steps = plan_fan_out(wanted_fan_out(BOTH), AS_WANTED)

    assert {step.action for step in steps} == {Action.UNCHANGED}


def test_only_what_differs_is_a_change() -> None:
    existing = Existing(
        topics=AS_WANTED.topics,
        subscriptions={
            ("topic", "prod-orders"): {
                "RawMessageDelivery": "false",
                "FilterPolicy": '{"event_type": ["a"]}',
                "RedrivePolicy": '{"deadLetterTargetArn": "arn:aws:sqs:r:1:other"}',
            }
        },
        buses=AS_WANTED.buses,
        rules={("shop", "all"): ExistingRule(pattern='{"source":["x"]}', targets={"y": None})},
        policies={"prod-orders": AS_WANTED.policies["prod-orders"]},
    )

    steps = plan_fan_out(wanted_fan_out(BOTH), existing)

    changes = {step.item: step.changes for step in steps if step.changes}
    assert [(step.item, step.action) for step in steps if step.changes] == [
        (Item.POLICY, Action.CREATE),
        (Item.SUBSCRIPTION, Action.UPDATE),
        (Item.RULE, Action.UPDATE),
    ]
    assert changes[Item.SUBSCRIPTION] == (
        Change(attribute="RawMessageDelivery", old="false", new="true"),
        Change(attribute="FilterPolicy", old='{"event_type":["a"]}', new="{}"),
        Change(attribute="dead letters", old="other", new="prod-orders-dlq"),
    )
    assert changes[Item.RULE] == (
        Change(attribute="EventPattern", old='{"source":["x"]}', new='{"source":["shop"]}'),
        Change(attribute="target", old=None, new="prod-orders, dead letters to prod-orders-dlq"),
    )


@pytest.mark.parametrize(
    ("settings", "attributes", "words"),
    [
        (subscribed(), {"FifoTopic": "true"}, "is a FIFO topic, where the .* a standard topic"),
        (subscribed(topic_name="topic.fifo"), {}, "is a standard topic, where the .* a FIFO"),
    ],
)
def test_a_topic_of_the_other_type_is_told_before_anything_is_done(
    settings: Settings, attributes: dict[str, str], words: str
) -> None:
    wanted = wanted_fan_out(settings)

    with pytest.raises(TypeConflict, match=words):
        plan_fan_out(wanted, Existing(topics={wanted.topics[0].name: attributes}))
