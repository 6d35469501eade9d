"""What a subscribed queue receives: raw or wrapped, filtered, or nothing at all."""

import base64
import json
from datetime import datetime
from typing import Any

import pytest

from tests.localaws.fanout import Fanout, text


def test_a_raw_message_keeps_its_attributes(fanout: Fanout) -> None:
    topic = fanout.topic()
    url = fanout.raw(topic)
    attributes = {
        "text": text("a"),
        "number": {"DataType": "Number", "StringValue": "1.5"},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        "list": {"DataType": "String.Array", "StringValue": '["a"]'},
    }

    fanout.sns.publish(
        TopicArn=topic, Message="hello", Subject="unseen", MessageAttributes=attributes
    )

    (message,) = fanout.received(url)
    assert message["Body"] == "hello"
    assert message["MessageAttributes"] == attributes


def test_a_raw_message_with_more_attributes_than_sqs_takes_is_lost(fanout: Fanout) -> None:
    topic = fanout.topic()
    raw, wrapped = fanout.raw(topic), fanout.queue()
    fanout.subscribe(topic, wrapped)
    attributes = {f"a{number}": text("x") for number in range(11)}

    fanout.sns.publish(TopicArn=topic, Message="hello", MessageAttributes=attributes)

    assert len(fanout.bodies(wrapped)) == 1
    assert fanout.bodies(raw, 0) == []


def test_a_wrapped_message_is_a_notification(fanout: Fanout) -> None:
    topic, url = fanout.topic(), fanout.queue()
    subscription = fanout.subscribe(topic, url)
    attributes = {"text": text("a"), "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}

    told = fanout.sns.publish(
        TopicArn=topic, Message='{"a": 1}', Subject="news", MessageAttributes=attributes
    )

    (message,) = fanout.received(url)
    assert "MessageAttributes" not in message
    notification = json.loads(message["Body"])
    moment = datetime.fromisoformat(notification.pop("Timestamp")).timestamp()
    assert moment == pytest.approx(int(message["Attributes"]["SentTimestamp"]) / 1000, abs=0.002)
    assert subscription in notification.pop("UnsubscribeURL")
    assert base64.b64decode(notification.pop("Signature"))
    assert notification.pop("SigningCertURL").endswith(".pem")
    assert notification == {
        "Type": "Notification",
        "MessageId": told["MessageId"],
        "TopicArn": topic,
        "Subject": "news",
        "Message": '{"a": 1}',
        "SignatureVersion": "1",
        "MessageAttributes": {
            "text": {"Type": "String", "Value": "a"},
            "bytes": {"Type": "Binary", "Value": "AP8="},
        },
    }


def test_the_notification_of_a_fifo_topic_tells_its_sequence(fanout: Fanout) -> None:
    topic = fanout.topic(".fifo", ContentBasedDeduplication="true")
    url = fanout.queue(".fifo")
    fanout.subscribe(topic, url)

    told = fanout.sns.publish(TopicArn=topic, Message="x", MessageGroupId="g")

    notification = json.loads(fanout.bodies(url)[0])
    assert notification["SequenceNumber"] == told["SequenceNumber"]
    assert "Signature" not in notification


def test_queues_have_a_message_of_their_own_if_there_is_one(fanout: Fanout) -> None:
    topic = fanout.topic()
    url = fanout.raw(topic)

    for by_protocol in ({"default": "d", "sqs": "s"}, {"default": "d"}, {"default": "d", "sqs": 1}):
        fanout.sns.publish(TopicArn=topic, Message=json.dumps(by_protocol), MessageStructure="json")

    assert fanout.bodies(url, 3) == ["s", "d", "d"]


ATTRIBUTES = {
    "kind": text("order.placed"),
    "price": {"DataType": "Number", "StringValue": "10.0"},
    "tags": {"DataType": "String.Array", "StringValue": '["a", "b", 3]'},
    "blob": {"DataType": "Binary", "BinaryValue": b"x"},
}


@pytest.mark.parametrize(
    ("policy", "delivered"),
    [
        ({"kind": ["order.placed"]}, True),
        ({"kind": ["order.paid"]}, False),
        ({"kind": [{"prefix": "order."}]}, True),
        ({"kind": [{"suffix": ".placed"}]}, True),
        ({"kind": [{"anything-but": ["order.paid"]}]}, True),
        ({"kind": [{"anything-but": {"prefix": "order."}}]}, False),
        ({"kind": [{"equals-ignore-case": "ORDER.Placed"}]}, True),
        ({"kind": [{"exists": False}]}, False),
        ({"other": [{"exists": False}]}, True),
        ({"price": [10]}, True),
        ({"price": ["10.0"]}, False),
        ({"price": [{"numeric": [">", 5, "<=", 10]}]}, True),
        ({"tags": ["b"]}, True),
        ({"tags": [3]}, True),
        ({"tags": ["c"]}, False),
        ({"blob": ["x"]}, False),
        ({"kind": ["order.placed"], "price": [11]}, False),
        ({"$or": [{"price": [11]}, {"kind": ["order.placed"]}]}, True),
        ({"$or": [{"price": [11]}, {"kind": ["order.paid"]}]}, False),
    ],
)
def test_a_filter_policy_looks_at_the_attributes(
    fanout: Fanout, policy: Any, delivered: bool
) -> None:
    topic = fanout.topic()
    url = fanout.raw(topic, FilterPolicy=json.dumps(policy))

    fanout.sns.publish(TopicArn=topic, Message="x", MessageAttributes=ATTRIBUTES)

    assert fanout.bodies(url, int(delivered)) == ["x"] * delivered


@pytest.mark.parametrize(
    ("body", "delivered"),
    [
        ('{"order": {"lines": [{"sku": "a"}, {"sku": "b"}]}}', True),
        ('{"order": {"lines": [{"sku": "c"}]}}', False),
        ('{"order": "b"}', False),
        ("[]", False),
        ("no JSON", False),
    ],
)
def test_a_filter_policy_may_look_at_the_body(fanout: Fanout, body: str, delivered: bool) -> None:
    topic = fanout.topic()
    policy = json.dumps({"order": {"lines": {"sku": ["b"]}}})
    url = fanout.raw(topic, FilterPolicy=policy, FilterPolicyScope="MessageBody")

    fanout.sns.publish(TopicArn=topic, Message=body)

    assert fanout.bodies(url, int(delivered)) == [body] * delivered


def test_what_cannot_be_delivered_goes_to_the_dead_letter_queue(fanout: Fanout) -> None:
    topic, gone, dead = fanout.topic(), fanout.queue(), fanout.queue()
    redrive = json.dumps({"deadLetterTargetArn": fanout.arn(dead)})
    fanout.subscribe(topic, gone, RawMessageDelivery="true", RedrivePolicy=redrive)
    alive = fanout.raw(topic)
    fanout.sqs.delete_queue(QueueUrl=gone)

    fanout.sns.publish(TopicArn=topic, Message="x")

    assert fanout.bodies(dead) == ["x"]
    assert fanout.bodies(alive) == ["x"]


def test_a_missing_queue_does_not_fail_the_publish(fanout: Fanout) -> None:
    topic, gone, dead = fanout.topic(), fanout.queue(), fanout.queue()
    redrive = json.dumps({"deadLetterTargetArn": fanout.arn(dead)})
    fanout.subscribe(topic, gone, RedrivePolicy=redrive)
    for url in (gone, dead):
        fanout.sqs.delete_queue(QueueUrl=url)

    assert fanout.sns.publish(TopicArn=topic, Message="x")["MessageId"]
