"""The targets of a rule: put, list and remove."""

import re

from outboxd.localaws.events import inputs, requests, responses
from outboxd.localaws.events.call import Call
from outboxd.localaws.events.errors import constraint, limit_exceeded, unsupported, validation
from outboxd.localaws.events.operations.listing import listed
from outboxd.localaws.events.requests import Target
from outboxd.localaws.sqs.arns import parsed_arn
from outboxd.localaws.sqs.validation import is_token

# "EventBridge quotas", EventBridge User Guide.
MAX_TARGETS = 5
MAX_TARGETS_PER_REQUEST = 100

_ID = re.compile(r"[.\-_A-Za-z0-9]{1,64}\Z")


def put_targets(call: Call, request: requests.PutTargets) -> responses.ChangedTargets:
    """Add targets, or replace those with the same ids."""
    rule = call.registry.rule(request.rule, request.event_bus_name, call.region)
    if not 1 <= len(request.targets) <= MAX_TARGETS_PER_REQUEST:
        raise constraint(
            [target.id for target in request.targets],
            "targets",
            f"Member must have length between 1 and {MAX_TARGETS_PER_REQUEST}",
        )
    for target in request.targets:
        _check(target)
    targets = {**rule.targets, **{target.id: target for target in request.targets}}
    if len(targets) > MAX_TARGETS:
        raise limit_exceeded()
    rule.targets = targets
    return responses.ChangedTargets(0, [])


def remove_targets(call: Call, request: requests.RemoveTargets) -> responses.ChangedTargets:
    rule = call.registry.rule(request.rule, request.event_bus_name, call.region)
    if not request.ids:
        raise constraint([], "ids", "Member must have length greater than or equal to 1")
    failed: list[responses.FailedTarget] = []
    for id in request.ids:
        if rule.targets.pop(id, None) is None:
            message = f"Rule {rule.name} does not have a target with the Id {id}."
            failed.append(responses.FailedTarget(id, "ResourceNotFoundException", message))
    return responses.ChangedTargets(len(failed), failed)


def list_targets_by_rule(call: Call, request: requests.ListTargetsByRule) -> responses.Targets:
    rule = call.registry.rule(request.rule, request.event_bus_name, call.region)
    targets = [rule.targets[id] for id in sorted(rule.targets)]
    shown, token = listed(targets, lambda target: target.id, request.limit, request.next_token)
    return responses.Targets(shown, token)


def _check(target: Target) -> None:
    """Raises AwsError. Whether the queue exists is not asked, as in AWS: deliveries will fail."""
    if not _ID.match(target.id):
        raise constraint(
            target.id,
            "targets",
            r"Member must satisfy regular expression pattern: [\.\-_A-Za-z0-9]+",
        )
    if not target.arn.startswith("arn:"):
        raise validation(
            f"Parameter {target.arn} is not valid. Reason: Provided Arn is not in correct format."
        )
    place = parsed_arn(target.arn)
    if place is None:
        raise unsupported(f"delivers events to SQS queues only, not to {target.arn}.")
    _check_group(target, place[1])
    dead_letter_config = target.dead_letter_config
    if dead_letter_config is not None and dead_letter_config.arn is not None:
        letters = parsed_arn(dead_letter_config.arn)
        if letters is None or letters[1].endswith(".fifo"):
            raise validation(
                f"DeadLetterConfig of target {target.id}: the Arn must be that of a standard queue."
            )
    inputs.check(target)


def _check_group(target: Target, queue_name: str) -> None:
    group = None if target.sqs_parameters is None else target.sqs_parameters.message_group_id
    if group is None:
        if queue_name.endswith(".fifo"):
            raise validation(
                f"Parameter(s) MessageGroupId must be specified for target: {target.id}."
            )
    elif not is_token(group):
        raise validation(f"Parameter MessageGroupId is not valid for target: {target.id}.")
