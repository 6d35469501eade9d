"""FIFO topics: groups and their order, and five minutes of deduplication."""

import json

import pytest

from tests.localaws.fanout import Fanout, messages, open_fanout, refusal
from tests.localaws.support import Aws, running_aws


def test_a_batch_keeps_its_order_in_the_queue(fanout: Fanout) -> None:
    topic = fanout.topic(".fifo", ContentBasedDeduplication="true")
    url = fanout.raw(topic, ".fifo")
    texts = [f"{n}" for n in range(10)]

    told = fanout.sns.publish_batch(
        TopicArn=topic, PublishBatchRequestEntries=messages(*texts, MessageGroupId="g")
    )

    sequence = [int(each["SequenceNumber"]) for each in told["Successful"]]
    assert sequence == sorted(sequence)
    received = fanout.received(url, 10)
    assert [message["Body"] for message in received] == texts
    assert {message["Attributes"]["MessageGroupId"] for message in received} == {"g"}


@pytest.mark.parametrize(
    ("first", "second", "delivered"),
    [
        ({"MessageDeduplicationId": "d"}, {"MessageDeduplicationId": "d"}, 1),
        ({"MessageDeduplicationId": "d"}, {"MessageDeduplicationId": "e"}, 2),
        ({}, {}, 1),
        ({}, {"MessageGroupId": "other"}, 1),
    ],
)
def test_a_repeat_is_accepted_and_not_delivered(
    fanout: Fanout, first: dict[str, str], second: dict[str, str], delivered: int
) -> None:
    topic = fanout.topic(".fifo", ContentBasedDeduplication="true")
    url = fanout.raw(topic, ".fifo")

    told = [
        fanout.sns.publish(**{"TopicArn": topic, "Message": "x", "MessageGroupId": "g", **members})
        for members in (first, second)
    ]

    assert len({each["MessageId"] for each in told}) == delivered
    assert len(fanout.bodies(url, delivered)) == delivered


def test_deduplication_within_a_batch(fanout: Fanout) -> None:
    topic = fanout.topic(".fifo", ContentBasedDeduplication="true")
    url = fanout.raw(topic, ".fifo")

    told = fanout.sns.publish_batch(
        TopicArn=topic, PublishBatchRequestEntries=messages("x", "x", MessageGroupId="g")
    )

    assert len(told["Successful"]) == 2
    assert fanout.bodies(url) == ["x"]


def test_deduplication_may_be_per_group(fanout: Fanout) -> None:
    topic = fanout.topic(".fifo", FifoThroughputScope="MessageGroup")
    url = fanout.raw(topic, ".fifo")
    fanout.sqs.set_queue_attributes(QueueUrl=url, Attributes={"DeduplicationScope": "messageGroup"})

    for group in ("a", "b", "b"):
        fanout.sns.publish(
            TopicArn=topic, Message=group, MessageGroupId=group, MessageDeduplicationId="d"
        )

    assert sorted(fanout.bodies(url, 2)) == ["a", "b"]


def test_deduplication_ends_after_five_minutes() -> None:
    with running_aws() as aws, open_fanout(aws.endpoint) as fanout:
        topic = fanout.topic(".fifo", ContentBasedDeduplication="true")
        url = fanout.raw(topic, ".fifo")

        def publish(aws: Aws) -> str:
            told = fanout.sns.publish(TopicArn=topic, Message="x", MessageGroupId="g")
            return str(told["MessageId"])

        first = publish(aws)
        aws.advance(299)
        assert publish(aws) == first
        aws.advance(2)
        assert publish(aws) != first

        assert fanout.bodies(url, 2) == ["x", "x"]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({}, "MessageGroupId parameter is required"),
        ({"MessageGroupId": "g"}, "ContentBasedDeduplication"),
    ],
)
def test_a_fifo_topic_must_be_told_group_and_id(
    fanout: Fanout, members: dict[str, str], words: str
) -> None:
    topic = fanout.topic(".fifo")
    good = messages("a", MessageGroupId="g", MessageDeduplicationId="d")
    entries = [*good, {"Id": "bad", "Message": "b", **members}]

    single = refusal(fanout.sns.publish, TopicArn=topic, Message="x", **members)
    batch = refusal(fanout.sns.publish_batch, TopicArn=topic, PublishBatchRequestEntries=entries)

    for told in (single, batch):
        assert told[0] == "InvalidParameter"
        assert words in told[2]


def test_a_standard_queue_takes_the_messages_of_a_fifo_topic(fanout: Fanout) -> None:
    topic = fanout.topic(".fifo")
    url = fanout.raw(topic)

    fanout.sns.publish(TopicArn=topic, Message="x", MessageGroupId="g", MessageDeduplicationId="d")

    (message,) = fanout.received(url)
    assert message["Attributes"]["MessageGroupId"] == "g"


def test_a_dead_letter_queue_is_told_what_its_type_needs(fanout: Fanout) -> None:
    topic, gone, dead = fanout.topic(".fifo"), fanout.queue(), fanout.queue(".fifo")
    redrive = json.dumps({"deadLetterTargetArn": fanout.arn(dead)})
    fanout.subscribe(topic, gone, RedrivePolicy=redrive)
    fanout.sqs.delete_queue(QueueUrl=gone)

    fanout.sns.publish(TopicArn=topic, Message="x", MessageGroupId="g", MessageDeduplicationId="d")

    (letter,) = fanout.received(dead)
    assert letter["Attributes"]["MessageDeduplicationId"] == "d"


def test_the_group_of_a_standard_topic_reaches_a_fair_queue(fanout: Fanout) -> None:
    topic = fanout.topic()
    url = fanout.raw(topic)

    fanout.sns.publish(TopicArn=topic, Message="x", MessageGroupId="tenant")

    (message,) = fanout.received(url)
    assert message["Attributes"]["MessageGroupId"] == "tenant"
