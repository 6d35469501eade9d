"""Whether a queue's policy lets a topic or a rule send, as far as a reader can tell."""

import json
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Any


class Admission(Enum):
    """What the policy says."""

    YES = auto()
    NO = auto()
    UNCLEAR = auto()
    """It depends on a condition that is not understood here."""


_SEND = "sqs:sendmessage"
_SAME = {"stringequals", "arnequals", "stringlike", "arnlike"}


def admission(policy: str | None, *, service: str, source: str, queue: str) -> Admission:
    """Whether `service` may send to the queue on behalf of the topic or rule `source`; both by ARN.

    Only what stands in policies of queues in practice: statements about the service, `*` or AWS
    as principals, and conditions on the source's ARN and account (IAM user guide, "policy
    evaluation logic"). What is denied without TLS is not denied to AWS's own services.
    """
    allowed, denied = Admission.NO, Admission.NO
    for statement in _statements(policy):
        if not (_principal(statement, service) and _action(statement)):
            continue
        if not _names(statement.get("Resource", "*"), queue):
            continue
        applies = _applies(statement.get("Condition", {}), source)
        if statement.get("Effect") == "Deny":
            denied = _stronger(denied, applies)
        else:
            allowed = _stronger(allowed, applies)
    if denied is Admission.YES or allowed is Admission.NO:
        return Admission.NO
    return Admission.UNCLEAR if denied is Admission.UNCLEAR else allowed


def _stronger(one: Admission, other: Admission) -> Admission:
    if Admission.YES in (one, other):
        return Admission.YES
    return Admission.UNCLEAR if Admission.UNCLEAR in (one, other) else Admission.NO


def _principal(statement: Mapping[str, Any], service: str) -> bool:
    principal = statement.get("Principal")
    if isinstance(principal, dict):
        everybody = "*" in _listed(principal.get("AWS"))
        return everybody or service in _listed(principal.get("Service"))
    return principal == "*"


def _action(statement: Mapping[str, Any]) -> bool:
    return any(fnmatchcase(_SEND, action.lower()) for action in _listed(statement.get("Action")))


def _names(resources: Any, queue: str) -> bool:
    return any(fnmatchcase(queue, resource) for resource in _listed(resources))


def _applies(conditions: Any, source: str) -> Admission:
    """All conditions have to hold."""
    verdict = Admission.YES
    for operator, keys in conditions.items() if isinstance(conditions, dict) else ():
        for key, values in keys.items() if isinstance(keys, dict) else ():
            match _holds(operator.lower(), key.lower(), _listed(values), source):
                case Admission.NO:
                    return Admission.NO
                case Admission.UNCLEAR:
                    verdict = Admission.UNCLEAR
                case Admission.YES:
                    pass
    return verdict


def _holds(operator: str, key: str, values: list[str], source: str) -> Admission:
    operator = operator.removesuffix("ifexists")
    match key:
        case "aws:sourcearn" if operator == "stringequals":  # the one that knows no wildcards
            held = source in values
        case "aws:sourcearn" if operator in _SAME:
            held = any(fnmatchcase(source, value) for value in values)
        case "aws:sourceaccount" if operator in _SAME:
            held = source.split(":")[4] in values
        case "aws:securetransport" if operator == "bool":
            held = "true" in (value.lower() for value in values)
        case _:
            return Admission.UNCLEAR
    return Admission.YES if held else Admission.NO


def _statements(policy: str | None) -> Iterator[Mapping[str, Any]]:
    try:
        document = json.loads(policy) if policy else {}
    except ValueError:
        return
    found = document.get("Statement", []) if isinstance(document, dict) else []
    statements = found if isinstance(found, list) else [found]
    for statement in statements:
        if isinstance(statement, dict):
            yield statement


def _listed(value: Any) -> list[str]:
    if isinstance(value, (str, bool)):
        return [str(value)]
    return [str(each) for each in value] if isinstance(value, list) else []
