"""Publish and PublishBatch: what is accepted, and how the rest fails."""

from typing import Any

import pytest

from tests.localaws.fanout import Fanout, messages, refusal, text

LIMIT = 262_144


def test_publishing_tells_an_id(fanout: Fanout) -> None:
    topic = fanout.topic()
    url = fanout.raw(topic)

    told = fanout.sns.publish(TopicArn=topic, Message="one")
    fanout.sns.publish(TargetArn=topic, Message="two")

    assert len(told["MessageId"]) == 36
    assert "SequenceNumber" not in told
    assert sorted(fanout.bodies(url, 2)) == ["one", "two"]


def test_a_batch_answers_by_id(fanout: Fanout) -> None:
    topic = fanout.topic()
    url = fanout.raw(topic)

    told = fanout.sns.publish_batch(
        TopicArn=topic, PublishBatchRequestEntries=messages("a", "ä \u2028 <&>", "c")
    )

    assert [each["Id"] for each in told["Successful"]] == ["id-0", "id-1", "id-2"]
    assert len({each["MessageId"] for each in told["Successful"]}) == 3
    assert told["Failed"] == []
    assert fanout.bodies(url, 3) == ["a", "ä \u2028 <&>", "c"]


def test_bad_entries_of_a_batch_fail_alone(fanout: Fanout) -> None:
    topic = fanout.topic()
    url = fanout.raw(topic)
    entries = [
        *messages("good"),
        {"Id": "empty", "Message": ""},
        {"Id": "subject", "Message": "x", "Subject": "two\nlines"},
        {"Id": "group", "Message": "x", "MessageGroupId": "a b"},
        {"Id": "dedup", "Message": "x", "MessageDeduplicationId": "d"},
    ]

    told = fanout.sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=entries)

    assert [each["Id"] for each in told["Successful"]] == ["id-0"]
    assert [(each["Id"], each["Code"], each["SenderFault"]) for each in told["Failed"]] == [
        (id_, "InvalidParameter", True) for id_ in ("empty", "subject", "group", "dedup")
    ]
    assert fanout.bodies(url) == ["good"]


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], "EmptyBatchRequest"),
        (messages(*"abcdefghijk"), "TooManyEntriesInBatchRequest"),
        (messages("a") + messages("b"), "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "Message": "x"}], "InvalidBatchEntryId"),
        (messages(*["x" * 30_000] * 9), "BatchRequestTooLong"),
        (messages("x", MessageAttributes={"a": {"DataType": "Date"}}), "ParameterValueInvalid"),
    ],
)
def test_bad_batches_are_refused_as_a_whole(fanout: Fanout, entries: Any, code: str) -> None:
    topic = fanout.topic()
    url = fanout.raw(topic)

    told = refusal(fanout.sns.publish_batch, TopicArn=topic, PublishBatchRequestEntries=entries)

    assert told[:2] == (code, 400)
    assert fanout.bodies(url, 0) == []


def test_the_size_is_that_of_all_bytes_together(fanout: Fanout) -> None:
    topic = fanout.topic()
    attributes = {"key": text("value")}  # 3 + 6 + 5 bytes

    fanout.sns.publish(TopicArn=topic, Message="é" * (LIMIT // 2))
    fanout.sns.publish(TopicArn=topic, Message="x" * (LIMIT - 14), MessageAttributes=attributes)

    for message in ("é" * (LIMIT // 2) + "x", "x" * (LIMIT + 1)):
        told = refusal(fanout.sns.publish, TopicArn=topic, Message=message)
        assert told == ("InvalidParameter", 400, "Invalid parameter: Message too long")
    message = "x" * (LIMIT - 13)
    told = refusal(
        fanout.sns.publish, TopicArn=topic, Message=message, MessageAttributes=attributes
    )
    assert told[0] == "InvalidParameter"
    half = "x" * (LIMIT // 2)
    fanout.sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=messages(half, half))
    told = refusal(
        fanout.sns.publish_batch,
        TopicArn=topic,
        PublishBatchRequestEntries=messages(half, half + "x"),
    )
    assert told[0] == "BatchRequestTooLong"


def test_a_topic_may_allow_more(fanout: Fanout) -> None:
    topic = fanout.topic(MaximumMessageSize="1048576")
    url = fanout.raw(topic)

    fanout.sns.publish(TopicArn=topic, Message="x" * 1_048_576)

    assert len(fanout.bodies(url)[0]) == 1_048_576


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"Message": ""}, "Empty message"),
        ({"Subject": "x" * 100}, "Subject"),
        ({"Subject": ""}, "Subject"),
        ({"MessageDeduplicationId": "d"}, "MessageDeduplicationId"),
        ({"MessageGroupId": "x" * 129}, "MessageGroupId"),
        ({"MessageStructure": "xml"}, "MessageStructure"),
        ({"MessageStructure": "json"}, "failed to parse"),
        ({"MessageStructure": "json", "Message": '{"sqs": "x"}'}, "No default entry"),
        ({"TargetArn": "{topic}"}, "only one of them"),
        ({"TopicArn": ""}, "no value for required parameter"),
    ],
)
def test_a_bad_message_is_refused(fanout: Fanout, members: Any, words: str) -> None:
    topic = fanout.topic()
    given = {name: topic if value == "{topic}" else value for name, value in members.items()}

    told = refusal(fanout.sns.publish, **{"TopicArn": topic, "Message": "x", **given})

    assert told[:2] == ("InvalidParameter", 400)
    assert words in told[2]


@pytest.mark.parametrize(
    "attribute",
    [
        {"DataType": "Date", "StringValue": "x"},
        {"DataType": "String"},
        {"DataType": "String", "StringValue": ""},
        {"DataType": "Number", "StringValue": "ten"},
        {"DataType": "Binary", "StringValue": "x"},
        {"DataType": "String", "StringValue": "x", "BinaryValue": b"x"},
    ],
)
def test_a_bad_attribute_is_refused(fanout: Fanout, attribute: Any) -> None:
    told = refusal(
        fanout.sns.publish,
        TopicArn=fanout.topic(),
        Message="x",
        MessageAttributes={"name": attribute},
    )

    assert told[:2] == ("ParameterValueInvalid", 400)


def test_phones_are_not_called(fanout: Fanout) -> None:
    told = refusal(fanout.sns.publish, PhoneNumber="+491234", Message="x")

    assert told[0] == "UnsupportedOperation"
