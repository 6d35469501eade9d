"""Queues let in who has to send to them, and forget nobody who may send already."""

import json

import pytest

from outboxd.core.queue_policies import (
    EVENTBRIDGE_STATEMENT,
    SNS_STATEMENT,
    admitted,
    admitting,
    name_in,
    rule_arn,
)

QUEUE = "arn:aws:sqs:us-east-1:111122223333:orders"
TOPIC = "arn:aws:sns:us-east-1:111122223333:order-topic"
OTHER = "arn:aws:sns:us-east-1:111122223333:other.fifo"
RULE = "arn:aws:events:us-east-1:111122223333:rule/shop/orders"
THEIRS = {"Sid": "Theirs", "Effect": "Deny", "Principal": "*", "Action": "*", "Resource": QUEUE}


def test_a_new_policy_lets_in_topics_and_rules_and_nobody_else() -> None:
    policy = json.loads(
        admitting(None, QUEUE, {SNS_STATEMENT: [TOPIC], EVENTBRIDGE_STATEMENT: [RULE]})
    )

    assert policy["Version"] == "2012-10-17"
    assert policy["Statement"] == [
        {
            "Sid": "OutboxdTopics",
            "Effect": "Allow",
            "Principal": {"Service": "sns.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": QUEUE,
            "Condition": {"ArnEquals": {"aws:SourceArn": [TOPIC]}},
        },
        {
            "Sid": "OutboxdRules",
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": QUEUE,
            "Condition": {"ArnEquals": {"aws:SourceArn": [RULE]}},
        },
    ]


def test_nobody_to_let_in_is_no_statement() -> None:
    policy = json.loads(admitting(None, QUEUE, {SNS_STATEMENT: [TOPIC], EVENTBRIDGE_STATEMENT: []}))

    assert [each["Sid"] for each in policy["Statement"]] == ["OutboxdTopics"]


@pytest.mark.parametrize("statement", [THEIRS, [THEIRS]], ids=["alone", "in a list"])
def test_other_statements_and_earlier_arns_stay(statement: object) -> None:
    before = json.dumps({"Version": "2008-10-17", "Id": "theirs", "Statement": statement})

    once = admitting(before, QUEUE, {SNS_STATEMENT: [TOPIC]})
    twice = json.loads(admitting(once, QUEUE, {SNS_STATEMENT: [OTHER]}))

    assert (twice["Version"], twice["Id"], twice["Statement"][0]) == (
        "2008-10-17",
        "theirs",
        THEIRS,
    )
    assert admitted(json.dumps(twice), SNS_STATEMENT) == {TOPIC, OTHER}


def test_a_single_arn_may_stand_without_a_list() -> None:
    policy = json.loads(admitting(None, QUEUE, {SNS_STATEMENT: [TOPIC]}))
    policy["Statement"][0]["Condition"]["ArnEquals"]["aws:SourceArn"] = TOPIC

    assert admitted(json.dumps(policy), SNS_STATEMENT) == {TOPIC}


@pytest.mark.parametrize("policy", [None, "", "{}", '{"Statement": []}'])
def test_no_policy_lets_nobody_in(policy: str | None) -> None:
    assert admitted(policy, SNS_STATEMENT) == frozenset()


@pytest.mark.parametrize(
    ("arn", "name"),
    [
        (TOPIC, "order-topic"),
        (RULE, "shop/orders"),
        ("arn:aws:events:us-east-1:111122223333:rule/orders", "orders"),
    ],
)
def test_names_are_read_from_arns(arn: str, name: str) -> None:
    assert name_in(arn) == name


def test_the_arn_of_a_rule_is_known_before_there_is_one() -> None:
    bus = "arn:aws:events:us-east-1:111122223333:event-bus/shop"

    assert rule_arn(bus, "shop/orders") == RULE
