"""Subscriptions of queues to topics, and their attributes."""

import json

import pytest

from tests.localaws.fanout import ACCOUNT, Fanout, refusal

QUEUE_ARN = f"arn:aws:sqs:us-east-1:{ACCOUNT}:none"


def test_a_subscription_is_made_once(fanout: Fanout) -> None:
    topic, url = fanout.topic(), fanout.queue()

    first = fanout.subscribe(topic, url, RawMessageDelivery="true")

    assert first.startswith(f"{topic}:")
    assert fanout.subscribe(topic, url, RawMessageDelivery="true") == first
    assert fanout.subscribe(topic, url) == first
    asked = refusal(
        fanout.sns.subscribe,
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=fanout.arn(url),
        Attributes={"RawMessageDelivery": "false"},
    )
    assert "already exists with different attributes" in asked[2]


def test_it_is_listed_with_its_topic(fanout: Fanout) -> None:
    topic, url = fanout.topic(), fanout.queue()
    arn = fanout.subscribe(topic, url)
    entry = {
        "SubscriptionArn": arn,
        "Owner": ACCOUNT,
        "Protocol": "sqs",
        "Endpoint": fanout.arn(url),
        "TopicArn": topic,
    }

    assert fanout.sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == [entry]
    pages = fanout.sns.get_paginator("list_subscriptions").paginate()
    assert entry in [each for page in pages for each in page["Subscriptions"]]
    attributes = fanout.sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    assert attributes["SubscriptionsConfirmed"] == "1"


def test_an_ended_subscription_delivers_nothing(fanout: Fanout) -> None:
    topic, url = fanout.topic(), fanout.queue()
    arn = fanout.subscribe(topic, url)

    fanout.sns.unsubscribe(SubscriptionArn=arn)
    fanout.sns.unsubscribe(SubscriptionArn=arn)
    fanout.sns.publish(TopicArn=topic, Message="x")

    assert fanout.bodies(url, 0) == []
    assert (
        "Subscriptions" not in fanout.sns.list_subscriptions_by_topic(TopicArn=topic)
        or not fanout.sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    )
    assert refusal(fanout.sns.unsubscribe, SubscriptionArn="x")[0] == "InvalidParameter"


def test_attributes_are_set_and_read(fanout: Fanout) -> None:
    topic, url = fanout.topic(), fanout.queue()
    dead = fanout.arn(fanout.queue())
    arn = fanout.subscribe(topic, url)
    policy, redrive = json.dumps({"a": ["b"]}), json.dumps({"deadLetterTargetArn": dead})

    for name, value in [
        ("RawMessageDelivery", "true"),
        ("FilterPolicyScope", "MessageBody"),
        ("FilterPolicy", policy),
        ("RedrivePolicy", redrive),
    ]:
        fanout.sns.set_subscription_attributes(
            SubscriptionArn=arn, AttributeName=name, AttributeValue=value
        )

    attributes = fanout.sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert attributes["RawMessageDelivery"] == "true"
    assert attributes["FilterPolicy"] == policy
    assert attributes["FilterPolicyScope"] == "MessageBody"
    assert attributes["RedrivePolicy"] == redrive
    assert attributes["PendingConfirmation"] == "false"


def test_alternatives_of_a_filter_policy_add_up(fanout: Fanout) -> None:
    policy = {"$or": [{name: list(range(70))} for name in "ab"]}

    assert fanout.subscribe(fanout.topic(), fanout.queue(), FilterPolicy=json.dumps(policy))


def test_an_empty_filter_policy_is_none(fanout: Fanout) -> None:
    topic, url = fanout.topic(), fanout.queue()
    arn = fanout.subscribe(topic, url, FilterPolicy='{"a": ["b"]}')

    fanout.sns.set_subscription_attributes(
        SubscriptionArn=arn, AttributeName="FilterPolicy", AttributeValue="{}"
    )
    fanout.sns.publish(TopicArn=topic, Message="x")

    attributes = fanout.sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    assert "FilterPolicy" not in attributes
    assert len(fanout.bodies(url)) == 1


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("RawMessageDelivery", "maybe", "InvalidParameter"),
        ("FilterPolicyScope", "Nowhere", "InvalidParameter"),
        ("FilterPolicy", "{", "InvalidParameter"),
        ("FilterPolicy", "[]", "InvalidParameter"),
        ("FilterPolicy", '{"a": "b"}', "InvalidParameter"),
        ("FilterPolicy", '{"a": {"b": ["c"]}}', "InvalidParameter"),
        ("FilterPolicy", '{"$or": [{"a": {"b": ["c"]}}, {"d": ["e"]}]}', "InvalidParameter"),
        ("FilterPolicy", json.dumps({str(n): ["x"] for n in range(6)}), "InvalidParameter"),
        ("FilterPolicy", json.dumps({"a": list(range(151))}), "InvalidParameter"),
        ("RedrivePolicy", "{", "InvalidParameter"),
        ("RedrivePolicy", "{}", "InvalidParameter"),
        ("RedrivePolicy", json.dumps({"deadLetterTargetArn": "x"}), "InvalidParameter"),
        (
            "RedrivePolicy",
            json.dumps({"deadLetterTargetArn": f"{QUEUE_ARN}.fifo"}),
            "InvalidParameter",
        ),
        ("ReplayPolicy", "{}", "UnsupportedOperation"),
        ("Nonsense", "x", "InvalidParameter"),
    ],
)
def test_bad_attributes_are_refused(fanout: Fanout, name: str, value: str, code: str) -> None:
    topic, url = fanout.topic(), fanout.queue()
    asked = {"TopicArn": topic, "Protocol": "sqs", "Endpoint": fanout.arn(url)}

    assert refusal(fanout.sns.subscribe, **asked, Attributes={name: value})[0] == code
    assert fanout.sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"] == []


@pytest.mark.parametrize(
    ("protocol", "endpoint", "code", "words"),
    [
        ("email", "a@b.c", "UnsupportedOperation", "SQS queues only"),
        ("lambda", "arn:aws:lambda:x", "UnsupportedOperation", "SQS queues only"),
        ("pigeon", "coop", "InvalidParameter", "protocol string"),
        ("sqs", "http://queue", "InvalidParameter", "SQS endpoint ARN"),
        ("sqs", f"{QUEUE_ARN}.fifo", "InvalidParameter", "FIFO SQS Queues"),
    ],
)
def test_what_cannot_be_subscribed_is_said(
    fanout: Fanout, protocol: str, endpoint: str, code: str, words: str
) -> None:
    asked = {"TopicArn": fanout.topic(), "Protocol": protocol, "Endpoint": endpoint}

    told = refusal(fanout.sns.subscribe, **asked)

    assert told[0] == code
    assert words in told[2]
