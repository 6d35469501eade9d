"""What SNS and EventBridge do, asked of our own server and of those of others.

A gap is a test that an emulator is known to fail because it differs from AWS.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.emulators import EMULATORS
from tests.localaws.fanout import Fanout, an_entry, messages, open_fanout, refusal, text

GAPS: dict[str, frozenset[str]] = {
    "localaws": frozenset(),
    "moto": frozenset(
        {
            "test_a_bad_attribute_has_a_code_of_its_own",
            "test_a_missing_bus_takes_events_all_the_same",
            "test_a_part_of_the_event",
            "test_batches_of_a_fifo_topic_keep_their_order",
            "test_sizes_are_bytes",
        }
    ),
    "roto": frozenset(
        {
            "test_a_bad_attribute_has_a_code_of_its_own",
            "test_a_missing_bus_takes_events_all_the_same",
            "test_entries_fail_alone",
            "test_the_default_bus_is_not_made_again",
        }
    ),
}


@pytest.fixture(scope="module", params=sorted(EMULATORS))
def emulator(request: pytest.FixtureRequest) -> Iterator[tuple[str, Fanout]]:
    with EMULATORS[request.param]() as endpoint, open_fanout(endpoint) as fanout:
        yield request.param, fanout


@pytest.fixture
def there(emulator: tuple[str, Fanout], request: pytest.FixtureRequest) -> Fanout:
    name, fanout = emulator
    test = getattr(request.node, "originalname", "")
    if test in GAPS[name]:
        request.applymarker(pytest.mark.xfail(strict=True, reason=f"{name} differs from AWS"))
    return fanout


def test_raw_and_wrapped(there: Fanout) -> None:
    topic, wrapped = there.topic(), there.queue()
    there.subscribe(topic, wrapped)
    raw = there.raw(topic)

    told = there.sns.publish(
        TopicArn=topic, Message="hello", Subject="news", MessageAttributes={"k": text("v")}
    )

    (message,) = there.received(raw)
    assert (message["Body"], message["MessageAttributes"]["k"]["StringValue"]) == ("hello", "v")
    notification = json.loads(there.bodies(wrapped)[0])
    for name, value in [
        ("Type", "Notification"),
        ("MessageId", told["MessageId"]),
        ("TopicArn", topic),
        ("Subject", "news"),
        ("Message", "hello"),
        ("MessageAttributes", {"k": {"Type": "String", "Value": "v"}}),
    ]:
        assert notification[name] == value


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"kind": ["a.b"]}, True),
        ({"kind": [{"prefix": "a."}]}, True),
        ({"kind": [{"anything-but": ["a.b"]}]}, False),
        ({"kind": [{"exists": False}]}, False),
        ({"other": [{"exists": False}]}, True),
        ({"price": [{"numeric": [">", 5, "<=", 10]}]}, True),
        ({"price": [{"numeric": [">", 10]}]}, False),
        ({"kind": ["a.b"], "price": [11]}, False),
    ],
)
def test_filter_policies(there: Fanout, policy: Any, expected: bool) -> None:
    topic = there.topic()
    url = there.raw(topic, FilterPolicy=json.dumps(policy))
    attributes = {"kind": text("a.b"), "price": {"DataType": "Number", "StringValue": "10"}}

    there.sns.publish(TopicArn=topic, Message="x", MessageAttributes=attributes)

    assert there.bodies(url, int(expected)) == ["x"] * expected


def test_filter_policies_on_bodies(there: Fanout) -> None:
    topic = there.topic()
    policy = json.dumps({"order": {"kind": ["new"]}})
    url = there.raw(topic, FilterPolicy=policy, FilterPolicyScope="MessageBody")

    for kind in ("old", "new"):
        there.sns.publish(TopicArn=topic, Message=json.dumps({"order": {"kind": kind}}))

    assert [json.loads(body)["order"]["kind"] for body in there.bodies(url)] == ["new"]


def test_batches_of_a_fifo_topic_keep_their_order(there: Fanout) -> None:
    topic = there.topic(".fifo", ContentBasedDeduplication="true")
    url = there.raw(topic, ".fifo")

    told = there.sns.publish_batch(
        TopicArn=topic, PublishBatchRequestEntries=messages(*"abc", MessageGroupId="g")
    )

    assert [each["Id"] for each in told["Successful"]] == ["id-0", "id-1", "id-2"]
    assert [message["Body"] for message in there.received(url, 3)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        (messages(*"abcdefghijk"), "TooManyEntriesInBatchRequest"),
        (messages("a") + messages("b"), "BatchEntryIdsNotDistinct"),
    ],
)
def test_batches_of_sns_are_refused(there: Fanout, entries: Any, code: str) -> None:
    told = refusal(
        there.sns.publish_batch, TopicArn=there.topic(), PublishBatchRequestEntries=entries
    )

    assert told[0] == code


@pytest.mark.parametrize(
    ("members", "codes"),
    [
        ({"Message": "x" * 262_145}, {"InvalidParameter", "InvalidParameterException"}),
        ({"Subject": "x" * 101}, {"InvalidParameter", "InvalidParameterException"}),
    ],
)
def test_messages_of_sns_are_refused(there: Fanout, members: Any, codes: set[str]) -> None:
    told = refusal(there.sns.publish, **{"TopicArn": there.topic(), "Message": "x", **members})

    assert told[0] in codes


def test_sizes_are_bytes(there: Fanout) -> None:
    told = refusal(there.sns.publish, TopicArn=there.topic(), Message="é" * 131_073)

    assert told[0] == "InvalidParameter"


def test_a_bad_attribute_has_a_code_of_its_own(there: Fanout) -> None:
    attributes = {"a": {"DataType": "Date", "StringValue": "x"}}

    told = refusal(
        there.sns.publish, TopicArn=there.topic(), Message="x", MessageAttributes=attributes
    )

    assert told[0] == "ParameterValueInvalid"


def test_a_missing_topic_is_told(there: Fanout) -> None:
    arn = there.topic() + "-none"

    assert refusal(there.sns.publish, TopicArn=arn, Message="x")[:2] == ("NotFound", 404)


def test_the_envelope_of_an_event(there: Fanout) -> None:
    bus, url = there.bus(), there.queue()
    there.rule(bus, {"source": ["shop"]}, there.target(url))

    told = there.put(bus, {"n": 1}, Resources=["order-17"])

    event = json.loads(there.bodies(url)[0])
    assert {"time", "region"} < set(event)
    for name, value in [
        ("version", "0"),
        ("id", told["Entries"][0]["EventId"]),
        ("detail-type", "OrderPlaced"),
        ("source", "shop"),
        ("resources", ["order-17"]),
        ("detail", {"n": 1}),
    ]:
        assert event[name] == value


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"source": ["shop"], "detail": {"n": [5]}}, True),
        ({"source": ["shop"], "detail": {"n": [6]}}, False),
        ({"detail": {"s": [{"prefix": "ab"}]}}, True),
        ({"detail": {"n": [{"numeric": [">", 4, "<", 6]}]}}, True),
        ({"detail": {"s": [{"anything-but": ["abc"]}]}}, False),
        ({"detail": {"deep": {"x": ["y"]}, "gone": [{"exists": False}]}}, True),
        ({"detail": {"list": ["b"]}}, True),
        ({"detail-type": ["Other"]}, False),
    ],
)
def test_patterns(there: Fanout, pattern: Any, expected: bool) -> None:
    bus, url = there.bus(), there.queue()
    there.rule(bus, pattern, there.target(url))

    there.put(bus, {"n": 5, "s": "abc", "deep": {"x": "y"}, "list": ["a", "b"]})

    assert len(there.bodies(url, int(expected))) == expected


def test_a_part_of_the_event(there: Fanout) -> None:
    bus, url = there.bus(), there.queue()
    there.rule(bus, {"source": ["shop"]}, there.target(url, InputPath="$.detail.s"))

    there.put(bus, {"s": "abc"})

    assert there.bodies(url) == ['"abc"']


@pytest.mark.parametrize(
    ("members", "codes"),
    [
        ({"Detail": "{"}, {"MalformedDetail"}),
        ({"Source": ""}, {"InvalidArgument"}),
        ({"DetailType": ""}, {"InvalidArgument"}),
    ],
)
def test_entries_fail_alone(there: Fanout, members: Any, codes: set[str]) -> None:
    told = there.events.put_events(Entries=[an_entry(), an_entry(**members), an_entry()])

    assert told["FailedEntryCount"] == 1
    assert [("EventId" in each) for each in told["Entries"]] == [True, False, True]
    assert told["Entries"][1]["ErrorCode"] in codes


def test_a_missing_bus_takes_events_all_the_same(there: Fanout) -> None:
    told = there.put("none", {})

    assert (told["FailedEntryCount"], "EventId" in told["Entries"][0]) == (0, True)


def test_eleven_events_are_refused(there: Fanout) -> None:
    assert refusal(there.events.put_events, Entries=[an_entry()] * 11)[0] == "ValidationException"


@pytest.mark.parametrize(
    ("operation", "members", "code"),
    [
        ("describe_event_bus", {"Name": "none"}, "ResourceNotFoundException"),
        ("describe_rule", {"Name": "none"}, "ResourceNotFoundException"),
        ("put_rule", {"Name": "r", "EventPattern": '{"a": "b"}'}, "InvalidEventPatternException"),
        ("put_rule", {"Name": "r"}, "ValidationException"),
    ],
)
def test_mistakes_are_told(there: Fanout, operation: str, members: Any, code: str) -> None:
    assert refusal(getattr(there.events, operation), **members)[0] == code


def test_the_default_bus_is_not_made_again(there: Fanout) -> None:
    told = refusal(there.events.create_event_bus, Name="default")

    assert told[0] == "ResourceAlreadyExistsException"
