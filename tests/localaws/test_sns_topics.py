"""Topics of SNS: made once, found again, configured and deleted."""

import json

import pytest

from tests.localaws.fanout import ACCOUNT, Fanout, a_name, refusal


def test_a_topic_is_made_once(fanout: Fanout) -> None:
    name = a_name("topic")

    first = fanout.sns.create_topic(Name=name)["TopicArn"]

    assert first == f"arn:aws:sns:us-east-1:{ACCOUNT}:{name}"
    assert fanout.sns.create_topic(Name=name)["TopicArn"] == first
    asked = refusal(fanout.sns.create_topic, Name=name, Attributes={"DisplayName": "x"})
    assert asked[:2] == ("InvalidParameter", 400)
    assert "already exists with different attributes" in asked[2]


def test_attributes_at_their_defaults_are_no_difference(fanout: Fanout) -> None:
    name = a_name("topic")
    first = fanout.sns.create_topic(Name=name)["TopicArn"]
    defaults = {"SignatureVersion": "1", "DisplayName": ""}

    assert fanout.sns.create_topic(Name=name, Attributes=defaults)["TopicArn"] == first
    other = {"KmsMasterKeyId": "alias/x"}
    assert refusal(fanout.sns.create_topic, Name=name, Attributes=other)[0] == "InvalidParameter"


def test_a_fifo_topic_has_its_suffix_and_its_attributes(fanout: Fanout) -> None:
    topic = fanout.topic(".fifo", ContentBasedDeduplication="true")

    attributes = fanout.sns.get_topic_attributes(TopicArn=topic)["Attributes"]

    assert (attributes["FifoTopic"], attributes["ContentBasedDeduplication"]) == ("true", "true")


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("a b", {}),
        ("x" * 257, {}),
        ("plain.fifo", {}),
        ("plain", {"FifoTopic": "true"}),
        ("plain", {"FifoTopic": "yes"}),
        ("plain", {"ContentBasedDeduplication": "true"}),
        ("plain", {"MaximumMessageSize": "1048577"}),
        ("plain", {"SignatureVersion": "3"}),
        ("plain", {"Policy": "{"}),
        ("plain", {"Nonsense": "1"}),
    ],
)
def test_bad_names_and_attributes_are_refused(
    fanout: Fanout, name: str, attributes: dict[str, str]
) -> None:
    code, status, _ = refusal(fanout.sns.create_topic, Name=name, Attributes=attributes)

    assert (code, status) == ("InvalidParameter", 400)


def test_attributes_are_set_and_read(fanout: Fanout) -> None:
    topic = fanout.topic()

    fanout.sns.set_topic_attributes(
        TopicArn=topic, AttributeName="DisplayName", AttributeValue="a < b & \r\n"
    )

    attributes = fanout.sns.get_topic_attributes(TopicArn=topic)["Attributes"]
    assert attributes["DisplayName"] == "a < b & \r\n"
    assert (attributes["TopicArn"], attributes["Owner"]) == (topic, ACCOUNT)
    assert json.loads(attributes["Policy"])["Statement"]


def test_what_cannot_be_set_is_refused(fanout: Fanout) -> None:
    topic = fanout.topic()

    for name, value, code in [
        ("FifoTopic", "true", "InvalidParameter"),
        ("Nonsense", "x", "InvalidParameter"),
        ("ArchivePolicy", "{}", "UnsupportedOperation"),
    ]:
        asked = {"TopicArn": topic, "AttributeName": name, "AttributeValue": value}
        assert refusal(fanout.sns.set_topic_attributes, **asked)[0] == code


def test_a_deleted_topic_is_gone_with_its_subscriptions(fanout: Fanout) -> None:
    topic = fanout.topic()
    subscription = fanout.subscribe(topic, fanout.queue())

    fanout.sns.delete_topic(TopicArn=topic)
    fanout.sns.delete_topic(TopicArn=topic)

    assert refusal(fanout.sns.publish, TopicArn=topic, Message="x")[:2] == ("NotFound", 404)
    asked = refusal(fanout.sns.get_subscription_attributes, SubscriptionArn=subscription)
    assert asked[0] == "NotFound"


def test_typed_exceptions_are_those_of_the_service_model(fanout: Fanout) -> None:
    arn = f"arn:aws:sns:us-east-1:{ACCOUNT}:none"
    with pytest.raises(fanout.sns.exceptions.NotFoundException):
        fanout.sns.get_topic_attributes(TopicArn=arn)
    with pytest.raises(fanout.sns.exceptions.InvalidParameterException):
        fanout.sns.get_topic_attributes(TopicArn="none")


@pytest.mark.parametrize(
    "arn",
    ["x", "arn:aws:sqs:us-east-1:000000000000:t", "arn:aws:sns:eu-west-1:000000000000:t", "a:" * 6],
)
def test_what_is_no_topic_of_this_region_is_refused(fanout: Fanout, arn: str) -> None:
    assert refusal(fanout.sns.publish, TopicArn=arn, Message="x")[0] == "InvalidParameter"


def test_lists_come_in_pages(fanout: Fanout) -> None:
    made = {fanout.topic() for _ in range(101)}

    pages = list(fanout.sns.get_paginator("list_topics").paginate())

    listed = [topic["TopicArn"] for page in pages for topic in page["Topics"]]
    assert len(pages[0]["Topics"]) == 100
    assert made <= set(listed)
    assert len(listed) == len(set(listed))
    assert refusal(fanout.sns.list_topics, NextToken="?")[0] == "InvalidParameter"
    for topic in made:
        fanout.sns.delete_topic(TopicArn=topic)
