"""PutEvents: which entries are accepted, and which queues they reach."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from outboxd.localaws.errors import AwsError
from outboxd.localaws.events import requests
from outboxd.localaws.events.call import Call
from outboxd.localaws.events.operations.put_events import put_events
from outboxd.localaws.events.registry import Registry
from outboxd.localaws.sqs.inbox import Inbox
from tests.localaws.fanout import ACCOUNT, Fanout, an_entry, refusal
from tests.localaws.support import Engine

LIMIT = 262_144


def a_call() -> Call:
    """For what botocore does not let pass."""
    queues = Engine()
    return Call(Registry(0.0), Inbox(queues.registry, queues.moves), "us-east-1", 0.0)


def a_bus(fanout: Fanout, pattern: object = None, **target: Any) -> tuple[str, str]:
    """A bus with one rule, and the URL of the queue to which it sends."""
    bus, url = fanout.bus(), fanout.queue()
    fanout.rule(bus, pattern or {"source": ["shop"]}, fanout.target(url, **target))
    return bus, url


def test_an_event_reaches_the_queue_in_its_envelope(fanout: Fanout) -> None:
    bus, url = a_bus(fanout)
    moment = datetime(2026, 5, 17, 12, 30, 15, tzinfo=UTC)

    told = fanout.put(bus, {"n": 1}, Resources=["order-17"], Time=moment)

    assert told["FailedEntryCount"] == 0
    assert [json.loads(body) for body in fanout.bodies(url)] == [
        {
            "version": "0",
            "id": told["Entries"][0]["EventId"],
            "detail-type": "OrderPlaced",
            "source": "shop",
            "account": ACCOUNT,
            "time": "2026-05-17T12:30:15Z",
            "region": "us-east-1",
            "resources": ["order-17"],
            "detail": {"n": 1},
        }
    ]


def test_the_detail_stays_as_it_is_written(fanout: Fanout) -> None:
    bus, url = a_bus(fanout)
    detail = '{"price": 1.10, "big": 123456789012345678901234567890, "ä": "\\u00e9"}'

    fanout.events.put_events(Entries=[an_entry(bus, Detail=detail)])

    assert f'"detail":{detail}' in fanout.bodies(url)[0]


def test_the_trace_goes_along(fanout: Fanout) -> None:
    bus, url = a_bus(fanout)

    fanout.put(bus, {}, TraceHeader="Root=1-5759e988-bd862e3fe1be46a994272793")

    (message,) = fanout.received(url)
    assert message["Attributes"]["AWSTraceHeader"].startswith("Root=1-5759e988")


def test_entries_fail_one_by_one_and_by_position(fanout: Fanout) -> None:
    bus, url = a_bus(fanout)
    entries = [
        an_entry(bus, {"n": 0}),
        an_entry(bus, Detail="not json"),
        an_entry(bus, Detail="[]"),
        an_entry(bus, Detail='{"a": NaN}'),
        an_entry(bus, Source="aws.ec2"),
        an_entry(bus, Source=""),
        {"Source": "shop", "DetailType": "x", "EventBusName": bus},
        {"Source": "shop", "Detail": "{}", "EventBusName": bus},
        an_entry(bus, DetailType="x" * 129),
        an_entry(bus, {"n": 9}),
    ]

    told = fanout.events.put_events(Entries=entries)

    assert told["FailedEntryCount"] == 8
    assert [each.get("ErrorCode") for each in told["Entries"]] == [
        None,
        "MalformedDetail",
        "MalformedDetail",
        "MalformedDetail",
        "NotAuthorizedForSourceException",
        "InvalidArgument",
        "InvalidArgument",
        "InvalidArgument",
        "InvalidArgument",
        None,
    ]
    assert [("EventId" in each) for each in told["Entries"]] == [True, *[False] * 8, True]
    assert [json.loads(body)["detail"]["n"] for body in fanout.bodies(url, 2)] == [0, 9]


def test_a_detail_too_deep_to_be_read_is_malformed(fanout: Fanout) -> None:
    bus, _ = a_bus(fanout)

    for depth in range(900, 1020):
        told = fanout.events.put_events(
            Entries=[an_entry(bus, Detail='{"a":' * depth + "1" + "}" * depth)]
        )
        assert told["Entries"][0].get("ErrorCode") in (None, "MalformedDetail")


def test_an_event_for_a_missing_bus_is_accepted_and_lost(fanout: Fanout) -> None:
    told = fanout.put("none", {})

    assert told["FailedEntryCount"] == 0
    assert told["Entries"][0]["EventId"]


def test_a_bus_may_be_named_by_its_arn(fanout: Fanout) -> None:
    bus, url = a_bus(fanout)
    arn = fanout.events.describe_event_bus(Name=bus)["Arn"]

    fanout.put(arn, {})
    fanout.put(arn.replace(ACCOUNT, "111111111111"), {})

    assert len(fanout.bodies(url)) == 1


def test_without_a_bus_it_is_the_default_one(fanout: Fanout) -> None:
    url = fanout.queue()
    source = url.rpartition("/")[2]
    rule = fanout.rule("default", {"source": [source]}, fanout.target(url))

    fanout.events.put_events(Entries=[an_entry(Source=source)])

    assert len(fanout.bodies(url)) == 1
    fanout.events.remove_targets(Rule=rule, Ids=["queue"])
    fanout.events.delete_rule(Name=rule)


def test_ten_entries_are_the_most(fanout: Fanout) -> None:
    told = refusal(fanout.events.put_events, Entries=[an_entry("none")] * 11)

    assert told[:2] == ("ValidationException", 400)


def test_a_time_out_of_range_is_refused() -> None:
    entries = [requests.Entry(time, "shop", [], "x", "{}") for time in (-1.0, 1e12, float("nan"))]

    told = put_events(a_call(), requests.PutEvents(entries))

    assert [entry.error_code for entry in told.entries] == ["InvalidArgument"] * 3


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"entries": []}, "between 1 and 10"),
        ({"endpoint_id": "abc.def"}, "global endpoints"),
    ],
)
def test_what_botocore_does_not_send_is_refused_as_well(members: Any, words: str) -> None:
    with pytest.raises(AwsError, match=words):
        put_events(a_call(), requests.PutEvents(**members))


def test_the_size_is_that_of_all_bytes_of_the_request(fanout: Fanout) -> None:
    bus = fanout.bus()
    frame = len('{"x": ""}') + len("shop") + len("OrderPlaced")
    text = "é" * ((LIMIT - frame) // 2)

    def put(text: str, **members: Any) -> Any:
        detail = f'{{"x": "{text}"}}'
        return fanout.events.put_events(Entries=[an_entry(bus, Detail=detail, **members)])

    assert put(text)["FailedEntryCount"] == 0
    for more in ({"Time": datetime.now(UTC)}, {"Resources": ["ab"]}):
        told = refusal(put, text=text, **more)
        assert told[0] == "ValidationException"
        assert "Total size" in told[2]
    half = an_entry(bus, Detail=f'{{"x": "{"x" * (LIMIT // 2)}"}}')
    assert refusal(fanout.events.put_events, Entries=[half, half])[0] == "ValidationException"


def test_rules_choose_by_pattern(fanout: Fanout) -> None:
    pattern = {
        "source": [{"prefix": "shop"}],
        "detail-type": ["OrderPlaced"],
        "detail": {"lines": {"price": [{"numeric": [">", 100]}]}, "test": [{"exists": False}]},
    }
    bus, url = a_bus(fanout, pattern)
    cheap, dear = {"price": 1}, {"price": 101}

    fanout.put(bus, {"lines": [cheap, dear]}, {"lines": [cheap]}, {"lines": [dear], "test": True})
    fanout.put(bus, {"lines": [dear]}, DetailType="Other")

    assert [json.loads(body)["detail"] for body in fanout.bodies(url)] == [{"lines": [cheap, dear]}]


def test_every_matching_rule_and_target_gets_the_event(fanout: Fanout) -> None:
    bus = fanout.bus()
    urls = [fanout.queue() for _ in range(3)]
    targets = [fanout.target(url, Id=str(number)) for number, url in enumerate(urls)]
    fanout.rule(bus, {"source": ["shop"]}, *targets[:2])
    fanout.rule(bus, {"detail-type": ["OrderPlaced"]}, *targets[1:])

    fanout.put(bus, {})

    received = [len(fanout.bodies(url, most)) for url, most in zip(urls, (1, 2, 1), strict=True)]
    assert received == [1, 2, 1]


def test_a_disabled_rule_sends_nothing(fanout: Fanout) -> None:
    bus, url = fanout.bus(), fanout.queue()
    rule = fanout.rule(bus, {"source": ["shop"]}, fanout.target(url))

    fanout.events.disable_rule(Name=rule, EventBusName=bus)
    fanout.put(bus, {"n": 1})
    fanout.events.enable_rule(Name=rule, EventBusName=bus)
    fanout.put(bus, {"n": 2})

    assert [json.loads(body)["detail"] for body in fanout.bodies(url)] == [{"n": 2}]


def test_a_fifo_queue_is_sent_a_group_and_deduplicates_by_content(fanout: Fanout) -> None:
    bus = fanout.bus()
    url = fanout.queue(".fifo", ContentBasedDeduplication="true")
    parameters = {"MessageGroupId": "g"}
    target = fanout.target(url, SqsParameters=parameters, InputPath="$.detail")
    fanout.rule(bus, {"source": ["shop"]}, target)

    fanout.put(bus, {"n": 1}, {"n": 2}, {"n": 1})

    received = fanout.received(url, 2)
    assert [message["Body"] for message in received] == ['{"n":1}', '{"n":2}']
    assert {message["Attributes"]["MessageGroupId"] for message in received} == {"g"}


def test_what_cannot_be_delivered_goes_to_the_dead_letter_queue(fanout: Fanout) -> None:
    # Without content-based deduplication a FIFO queue has no use for events.
    bus, fifo, dead = fanout.bus(), fanout.queue(".fifo"), fanout.queue()
    target = fanout.target(
        fifo,
        SqsParameters={"MessageGroupId": "g"},
        DeadLetterConfig={"Arn": fanout.arn(dead)},
        InputPath="$.detail",
    )
    rule = fanout.rule(bus, {"source": ["shop"]}, target)

    told = fanout.put(bus, {"n": 1})

    assert told["FailedEntryCount"] == 0
    (letter,) = fanout.received(dead)
    assert json.loads(letter["Body"])["detail"] == {"n": 1}
    attributes = {name: value["StringValue"] for name, value in letter["MessageAttributes"].items()}
    assert attributes.pop("ERROR_MESSAGE")
    assert attributes == {
        "RULE_ARN": f"arn:aws:events:us-east-1:{ACCOUNT}:rule/{bus}/{rule}",
        "TARGET_ARN": fanout.arn(fifo),
        "ERROR_CODE": "InvalidParameterValue",
    }


def test_a_missing_queue_does_not_fail_the_put(fanout: Fanout) -> None:
    bus, gone, dead = fanout.bus(), fanout.queue(), fanout.queue()
    target = fanout.target(gone, DeadLetterConfig={"Arn": fanout.arn(dead)})
    fanout.rule(bus, {"source": ["shop"]}, target)
    for url in (gone, dead):
        fanout.sqs.delete_queue(QueueUrl=url)

    assert fanout.put(bus, {})["FailedEntryCount"] == 0


INPUTS = [
    ({"Input": '{"fixed": 1}'}, '{"fixed": 1}'),
    ({"InputPath": "$.detail"}, '{"text":"a \\"b\\"","n":1.10,"list":[{"x":1}]}'),
    ({"InputPath": "$.detail.text"}, '"a \\"b\\""'),
    ({"InputPath": "$.detail.list[0]['x']"}, "1"),
    ({"InputPath": "$.detail.none"}, "null"),
    ({"InputPath": "$['detail-type']"}, '"OrderPlaced"'),
]


@pytest.mark.parametrize(("members", "body"), INPUTS)
def test_a_target_may_be_sent_a_part_or_a_constant(fanout: Fanout, members: Any, body: str) -> None:
    bus, url = a_bus(fanout, **members)

    detail = '{"text": "a \\"b\\"", "n": 1.10, "list": [{"x": 1}]}'
    fanout.events.put_events(Entries=[an_entry(bus, Detail=detail)])

    assert fanout.bodies(url) == [body]


@pytest.mark.parametrize(
    ("template", "body"),
    [
        ('{"n": <n>, "text": <text>}', '{"n": 1.10, "text": "a \\"b\\""}'),
        ('{"said": "It is <text>, <n> times, <all>"}', None),
        ('"It is <n>"', '"It is 1.10"'),
        ('{"gone": <gone>, "text": "<gone>"}', '{"gone": null, "text": ""}'),
        ('{"rule": "<aws.events.rule-name>"}', '{"rule": "{rule}"}'),
        ('{"arn": <aws.events.rule-arn>}', None),
        ("<aws.events.event.json>", None),
        ('{"event": <aws.events.event>, "at": <aws.events.event.ingestion-time>}', None),
        ('"escaped \\" <n>"', '"escaped \\" 1.10"'),
    ],
)
def test_a_target_may_be_sent_a_text_made_of_parts(
    fanout: Fanout, template: str, body: str | None
) -> None:
    paths = {"n": "$.detail.n", "text": "$.detail.text", "all": "$.detail", "gone": "$.none"}
    bus, url = fanout.bus(), fanout.queue()
    transformer = {"InputPathsMap": paths, "InputTemplate": template}
    rule = fanout.rule(bus, {"source": ["shop"]}, fanout.target(url, InputTransformer=transformer))

    detail = '{"text": "a \\"b\\"", "n": 1.10}'
    fanout.events.put_events(Entries=[an_entry(bus, Detail=detail)])

    (received,) = fanout.bodies(url)
    json.loads(received)
    if body is not None:
        assert received == body.replace("{rule}", rule)
