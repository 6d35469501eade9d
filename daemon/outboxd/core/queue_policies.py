"""Policies of queues, as far as topics and rules need to be let in. Other statements stay."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

SNS_STATEMENT = "OutboxdTopics"
EVENTBRIDGE_STATEMENT = "OutboxdRules"
"""The ids of our two statements in a policy."""

_SERVICES = {
    SNS_STATEMENT: "sns.amazonaws.com",
    EVENTBRIDGE_STATEMENT: "events.amazonaws.com",
}

_SOURCE = "aws:SourceArn"
_VERSION = "2012-10-17"


def admitted(policy: str | None, statement: str) -> frozenset[str]:
    """The ARNs that our statement of that id lets in."""
    for each in _statements(_parsed(policy)):
        if each.get("Sid") == statement:
            sources = each.get("Condition", {}).get("ArnEquals", {}).get(_SOURCE, [])
            return frozenset([sources] if isinstance(sources, str) else sources)
    return frozenset()


def admitting(policy: str | None, queue_arn: str, more: Mapping[str, Iterable[str]]) -> str:
    """The policy with these ARNs let in beside those that our statements let in already: another
    configuration may have asked for them."""
    document = _parsed(policy)
    statements = _statements(document)
    for statement, arns in more.items():
        sources = sorted(admitted(policy, statement) | set(arns))
        if sources:
            others = [each for each in statements if each.get("Sid") != statement]
            statements = [*others, _statement(statement, queue_arn, sources)]
    return json.dumps({"Version": _VERSION, **document, "Statement": statements})


def name_in(arn: str) -> str:
    """The name of a topic, or of a rule with its bus, as it stands in the ARN."""
    return arn.split(":", 5)[-1].removeprefix("rule/")


def rule_arn(bus_arn: str, name: str) -> str:
    """The ARN of a rule on that bus; `name` has the bus's name before it unless it is the default
    one. It is known before there is a rule, so a queue can let it in before it sends."""
    return f"{bus_arn.rpartition(':')[0]}:rule/{name}"


def _statement(statement: str, queue_arn: str, sources: list[str]) -> dict[str, Any]:
    return {
        "Sid": statement,
        "Effect": "Allow",
        "Principal": {"Service": _SERVICES[statement]},
        "Action": "sqs:SendMessage",
        "Resource": queue_arn,
        "Condition": {"ArnEquals": {_SOURCE: sources}},
    }


def _parsed(policy: str | None) -> dict[str, Any]:
    document = json.loads(policy) if policy else {}
    return document if isinstance(document, dict) else {}


def _statements(document: dict[str, Any]) -> list[dict[str, Any]]:
    """A policy with one statement may have it without a list."""
    found = document.get("Statement", [])
    return [found] if isinstance(found, dict) else list(found)
