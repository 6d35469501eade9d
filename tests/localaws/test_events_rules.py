"""Event buses, rules and targets of EventBridge: made, listed, changed and deleted."""

import json
from typing import Any

import pytest

from tests.localaws.fanout import ACCOUNT, Fanout, a_name, refusal

PATTERN = json.dumps({"source": ["shop"]})
QUEUE_ARN = f"arn:aws:sqs:us-east-1:{ACCOUNT}:none"


def test_the_default_bus_is_there(fanout: Fanout) -> None:
    arn = f"arn:aws:events:us-east-1:{ACCOUNT}:event-bus/default"

    assert fanout.events.describe_event_bus()["Arn"] == arn
    assert fanout.events.describe_event_bus(Name=arn)["Name"] == "default"
    listed = fanout.events.list_event_buses(NamePrefix="default")["EventBuses"]
    assert [bus["Name"] for bus in listed] == ["default"]


def test_a_bus_is_made_and_deleted(fanout: Fanout) -> None:
    name = a_name("bus")
    made = fanout.events.create_event_bus(Name=name, Description="orders")

    assert made["EventBusArn"] == f"arn:aws:events:us-east-1:{ACCOUNT}:event-bus/{name}"
    told = fanout.events.describe_event_bus(Name=name)
    assert (told["Name"], told["Description"]) == (name, "orders")
    assert refusal(fanout.events.create_event_bus, Name=name)[0] == (
        "ResourceAlreadyExistsException"
    )

    fanout.events.delete_event_bus(Name=name)
    fanout.events.delete_event_bus(Name=name)
    with pytest.raises(fanout.events.exceptions.ResourceNotFoundException):
        fanout.events.describe_event_bus(Name=name)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("default", "ResourceAlreadyExistsException"),
        ("a b", "ValidationException"),
        ("a/b", "ValidationException"),
    ],
)
def test_bad_names_are_refused(fanout: Fanout, name: str, code: str) -> None:
    assert refusal(fanout.events.create_event_bus, Name=name)[0] == code


def test_what_is_in_use_is_not_deleted(fanout: Fanout) -> None:
    bus = fanout.bus()
    rule = fanout.rule(bus, {"source": ["shop"]}, {"Id": "1", "Arn": QUEUE_ARN})

    refused: list[tuple[Any, dict[str, Any]]] = [
        (fanout.events.delete_event_bus, {"Name": "default"}),
        (fanout.events.delete_event_bus, {"Name": bus}),
        (fanout.events.delete_rule, {"Name": rule, "EventBusName": bus}),
    ]
    for act, members in refused:
        assert refusal(act, **members)[0] == "ValidationException"

    fanout.events.remove_targets(Rule=rule, EventBusName=bus, Ids=["1"])
    fanout.events.delete_rule(Name=rule, EventBusName=bus)
    fanout.events.delete_rule(Name=rule, EventBusName=bus)
    fanout.events.delete_event_bus(Name=bus)


def test_a_rule_is_described_and_listed(fanout: Fanout) -> None:
    bus = fanout.bus()
    made = fanout.events.put_rule(
        Name="b", EventBusName=bus, EventPattern=PATTERN, Description="d", State="DISABLED"
    )
    fanout.events.put_rule(Name="a", EventBusName=bus, EventPattern=PATTERN)

    assert made["RuleArn"] == f"arn:aws:events:us-east-1:{ACCOUNT}:rule/{bus}/b"
    told = fanout.events.describe_rule(Name="b", EventBusName=bus)
    assert told["EventPattern"] == PATTERN
    assert (told["State"], told["Description"], told["EventBusName"]) == ("DISABLED", "d", bus)
    listed = fanout.events.list_rules(EventBusName=bus)["Rules"]
    assert [rule["Name"] for rule in listed] == ["a", "b"]
    first = fanout.events.list_rules(EventBusName=bus, Limit=1)
    rest = fanout.events.list_rules(EventBusName=bus, NextToken=first["NextToken"])
    assert [rule["Name"] for rule in rest["Rules"]] == ["b"]
    assert "NextToken" not in rest
    assert fanout.events.list_rules(EventBusName=bus, NamePrefix="x")["Rules"] == []


def test_a_rule_of_the_default_bus_does_not_name_it(fanout: Fanout) -> None:
    name = a_name("rule")

    arn = fanout.events.put_rule(Name=name, EventPattern=PATTERN)["RuleArn"]

    assert arn == f"arn:aws:events:us-east-1:{ACCOUNT}:rule/{name}"
    fanout.events.delete_rule(Name=name)


def test_a_changed_rule_keeps_its_targets(fanout: Fanout) -> None:
    bus = fanout.bus()
    target = {"Id": "1", "Arn": QUEUE_ARN, "InputPath": "$.detail"}
    rule = fanout.rule(bus, {"source": ["shop"]}, target)

    fanout.events.put_rule(Name=rule, EventBusName=bus, EventPattern=PATTERN)

    assert fanout.events.list_targets_by_rule(Rule=rule, EventBusName=bus)["Targets"] == [target]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"EventPattern": ""}, "ValidationException"),
        ({"EventPattern": "{"}, "InvalidEventPatternException"),
        ({"EventPattern": "{}"}, "InvalidEventPatternException"),
        ({"EventPattern": '{"source": "shop"}'}, "InvalidEventPatternException"),
        ({"EventPattern": '{"source": [{"near": "x"}]}'}, "InvalidEventPatternException"),
        ({"EventPattern": json.dumps({"source": ["x" * 4096]})}, "ValidationException"),
        ({"Name": "a b"}, "ValidationException"),
        ({"State": "ON"}, "ValidationException"),
        ({"ScheduleExpression": "rate(1 minute)"}, "UnsupportedOperation"),
        ({"EventBusName": "none"}, "ResourceNotFoundException"),
    ],
)
def test_a_bad_rule_is_refused(fanout: Fanout, members: Any, code: str) -> None:
    asked = {"Name": "rule", "EventBusName": fanout.bus(), "EventPattern": PATTERN, **members}

    assert refusal(fanout.events.put_rule, **asked)[0] == code


def test_what_is_not_there_is_told(fanout: Fanout) -> None:
    bus = fanout.bus()
    calls: list[tuple[Any, dict[str, Any]]] = [
        (fanout.events.describe_rule, {"Name": "none"}),
        (fanout.events.enable_rule, {"Name": "none"}),
        (fanout.events.disable_rule, {"Name": "none"}),
        (fanout.events.list_targets_by_rule, {"Rule": "none"}),
        (fanout.events.put_targets, {"Rule": "none", "Targets": [{"Id": "1", "Arn": QUEUE_ARN}]}),
        (fanout.events.remove_targets, {"Rule": "none", "Ids": ["1"]}),
    ]
    for act, members in calls:
        code, status, message = refusal(act, **members, EventBusName=bus)
        assert (code, status) == ("ResourceNotFoundException", 400)
        assert message == f"Rule none does not exist on EventBus {bus}."


def test_targets_are_replaced_by_id_and_removed(fanout: Fanout) -> None:
    bus = fanout.bus()
    rule = fanout.rule(bus, {"source": ["shop"]}, *({"Id": i, "Arn": QUEUE_ARN} for i in "ab"))
    changed = {"Id": "a", "Arn": f"{QUEUE_ARN}2"}

    put = fanout.events.put_targets(Rule=rule, EventBusName=bus, Targets=[changed])
    removed = fanout.events.remove_targets(Rule=rule, EventBusName=bus, Ids=["b", "z"])

    assert (put["FailedEntryCount"], put["FailedEntries"]) == (0, [])
    assert [each["TargetId"] for each in removed["FailedEntries"]] == ["z"]
    assert fanout.events.list_targets_by_rule(Rule=rule, EventBusName=bus)["Targets"] == [changed]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"Id": "a b"}, "ValidationException"),
        ({"Arn": "queue"}, "ValidationException"),
        ({"Arn": "arn:aws:lambda:us-east-1:000000000000:function:f"}, "UnsupportedOperation"),
        ({"Arn": f"{QUEUE_ARN}.fifo"}, "ValidationException"),
        ({"SqsParameters": {"MessageGroupId": "a b"}}, "ValidationException"),
        ({"Input": "{"}, "ValidationException"),
        ({"Input": "{}", "InputPath": "$.detail"}, "ValidationException"),
        ({"InputPath": "detail"}, "ValidationException"),
        ({"InputPath": "$.detail[*]"}, "ValidationException"),
        ({"InputTransformer": {"InputTemplate": "<a>"}}, "ValidationException"),
        (
            {"InputTransformer": {"InputTemplate": "<aws.x>", "InputPathsMap": {"aws.x": "$"}}},
            "ValidationException",
        ),
        (
            {"InputTransformer": {"InputTemplate": "<a>", "InputPathsMap": {"a": "x"}}},
            "ValidationException",
        ),
        ({"DeadLetterConfig": {"Arn": f"{QUEUE_ARN}.fifo"}}, "ValidationException"),
    ],
)
def test_a_bad_target_is_refused(fanout: Fanout, members: Any, code: str) -> None:
    bus = fanout.bus()
    rule = fanout.rule(bus, {"source": ["shop"]})
    good, bad = {"Id": "good", "Arn": QUEUE_ARN}, {"Id": "bad", "Arn": QUEUE_ARN, **members}

    told = refusal(fanout.events.put_targets, Rule=rule, EventBusName=bus, Targets=[good, bad])

    assert told[0] == code
    assert fanout.events.list_targets_by_rule(Rule=rule, EventBusName=bus)["Targets"] == []


def test_a_rule_has_five_targets_at_most(fanout: Fanout) -> None:
    bus = fanout.bus()
    rule = fanout.rule(bus, {"source": ["shop"]})
    targets = [{"Id": str(number), "Arn": QUEUE_ARN} for number in range(6)]

    told = refusal(fanout.events.put_targets, Rule=rule, EventBusName=bus, Targets=targets)

    assert told[0] == "LimitExceededException"
