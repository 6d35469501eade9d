"""Tags and permissions. Both are remembered only: nobody is ever denied access here."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.call import Call
from outboxd.localaws.sqs.errors import (
    invalid_parameter,
    invalid_parameter_value,
    missing_parameter,
    over_limit,
)
from outboxd.localaws.sqs.queue import Queue

MAX_TAGS = 50
MAX_ACTIONS = 7

_LABEL = re.compile(r"[A-Za-z0-9_-]{1,80}\Z")
_ACCOUNT = re.compile(r"\d{12}\Z")


def tag_queue(call: Call, request: requests.TagQueue) -> None:
    queue = call.queue(request.queue_url)
    if not request.tags:
        raise missing_parameter("Tags")
    tags = queue.tags | request.tags
    check_tags(tags)
    queue.tags = tags


def untag_queue(call: Call, request: requests.UntagQueue) -> None:
    queue = call.queue(request.queue_url)
    if not request.tag_keys:
        raise invalid_parameter("Tag keys must be between 1 and 50 in number.")
    for key in request.tag_keys:
        queue.tags.pop(key, None)


def list_queue_tags(call: Call, request: requests.QueueOnly) -> responses.QueueTags:
    return responses.QueueTags(dict(call.queue(request.queue_url).tags))


def check_tags(tags: Mapping[str, str]) -> None:
    """Raises InvalidParameterValue."""
    if len(tags) > MAX_TAGS:
        raise invalid_parameter(f"Too many tags added for queue: at most {MAX_TAGS}.")
    for key, value in tags.items():
        if not 1 <= len(key) <= 128 or len(value) > 256 or key.lower().startswith("aws:"):
            raise invalid_parameter(
                f"Tag {key!r} is invalid: a key has 1 to 128 characters and does not start with "
                "aws:, a value has at most 256."
            )


def add_permission(call: Call, request: requests.AddPermission) -> None:
    queue = call.queue(request.queue_url)
    _check_permission(request)
    policy = _policy(queue)
    if any(statement.get("Sid") == request.label for statement in policy["Statement"]):
        raise invalid_parameter_value(request.label, "Label", "Already exists.")
    policy["Statement"].append(
        {
            "Sid": request.label,
            "Effect": "Allow",
            "Principal": {
                "AWS": _one_or_all([f"arn:aws:iam::{a}:root" for a in request.account_ids])
            },
            "Action": _one_or_all([f"SQS:{action}" for action in request.actions]),
            "Resource": queue.identity.arn,
        }
    )
    _store(call, queue, policy)


def remove_permission(call: Call, request: requests.RemovePermission) -> None:
    queue = call.queue(request.queue_url)
    policy = _policy(queue)
    kept = [s for s in policy["Statement"] if s.get("Sid") != request.label]
    if len(kept) == len(policy["Statement"]):
        raise invalid_parameter_value(request.label, "Label", "can't find label.")
    policy["Statement"] = kept
    _store(call, queue, policy if kept else None)


def _check_permission(request: requests.AddPermission) -> None:
    if not _LABEL.match(request.label):
        reason = "1 to 80 alphanumeric characters, hyphens and underscores."
        raise invalid_parameter_value(request.label, "Label", reason)
    if not request.account_ids or not all(map(_ACCOUNT.match, request.account_ids)):
        raise invalid_parameter_value(request.account_ids, "PrincipalId", "Unable to verify.")
    if not request.actions:
        raise missing_parameter("Actions")
    if len(request.actions) > MAX_ACTIONS:
        raise over_limit(f"{len(request.actions)} Actions were found, maximum is {MAX_ACTIONS}.")


def _policy(queue: Queue) -> dict[str, Any]:
    if queue.settings.policy:
        policy = msgspec.json.decode(queue.settings.policy, type=dict[str, Any])
        policy.setdefault("Statement", [])
        return policy
    identifier = f"{queue.identity.arn}/SQSDefaultPolicy"
    return {"Version": "2008-10-17", "Id": identifier, "Statement": []}


def _store(call: Call, queue: Queue, policy: dict[str, Any] | None) -> None:
    text = "" if policy is None else msgspec.json.encode(policy).decode()
    queue.settings = msgspec.structs.replace(queue.settings, policy=text)
    queue.modified_at = call.now


def _one_or_all(texts: list[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else texts
