"""From a bus to the targets of the rules that an event matches."""

import logging

from outboxd.localaws.errors import AwsError
from outboxd.localaws.events.bus import Bus, Rule
from outboxd.localaws.events.call import Call
from outboxd.localaws.events.event import Event
from outboxd.localaws.events.inputs import input_of
from outboxd.localaws.events.requests import Target
from outboxd.localaws.sqs.inbox import Parcel
from outboxd.localaws.sqs.message import AttributeValue

log = logging.getLogger(__name__)


def deliver(call: Call, bus: Bus, event: Event) -> None:
    """Send to all targets before PutEvents is answered: AWS does it soon after."""
    for rule in bus.rules.values():
        if rule.enabled and rule.pattern.matches(event.content):
            for target in rule.targets.values():
                _send(call, rule, target, event)


def _send(call: Call, rule: Rule, target: Target, event: Event) -> None:
    """What the queue does not take goes to the target's dead-letter queue, or is lost: AWS does not
    retry what can never succeed."""
    parameters = target.sqs_parameters
    group = None if parameters is None else parameters.message_group_id
    # No deduplication id: EventBridge sends none, a FIFO target must deduplicate by content.
    parcel = Parcel(input_of(target, rule, event), group=group, trace_header=event.trace_header)
    try:
        call.inbox.put(target.arn, parcel, call.now)
    except AwsError as refusal:
        _not_delivered(rule, target.arn, refusal)
        config = target.dead_letter_config
        if config is not None and config.arn is not None:
            _bury(call, rule, target, event, config.arn, refusal)


def _bury(
    call: Call, rule: Rule, target: Target, event: Event, dead_letter_arn: str, refusal: AwsError
) -> None:
    """The event as it was, with the attributes that AWS gives to it."""
    attributes = {
        "RULE_ARN": AttributeValue("String", rule.arn),
        "TARGET_ARN": AttributeValue("String", target.arn),
        "ERROR_CODE": AttributeValue("String", refusal.code),
        "ERROR_MESSAGE": AttributeValue("String", refusal.message),
    }
    try:
        call.inbox.put(dead_letter_arn, Parcel(event.text, attributes), call.now)
    except AwsError as second_refusal:
        _not_delivered(rule, dead_letter_arn, second_refusal)


def _not_delivered(rule: Rule, queue: str, refusal: AwsError) -> None:
    log.warning(
        "EventBridge could not deliver an event",
        extra={"rule": rule.arn, "queue": queue, "reason": refusal.message},
    )
