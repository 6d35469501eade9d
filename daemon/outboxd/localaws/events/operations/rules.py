"""Rules: put, describe, list, switch and delete."""

import re

from outboxd.localaws.events import requests, responses
from outboxd.localaws.events.arns import rule_arn
from outboxd.localaws.events.bus import DISABLED, ENABLED, STATES, Bus, Rule
from outboxd.localaws.events.call import Call
from outboxd.localaws.events.errors import constraint, invalid_pattern, unsupported, validation
from outboxd.localaws.events.operations.listing import listed
from outboxd.localaws.matching import values
from outboxd.localaws.matching.operators import PatternError
from outboxd.localaws.matching.pattern import Pattern, compiled
from outboxd.localaws.sqs.arns import ACCOUNT

MAX_PATTERN_CHARACTERS = 4096

_NAME = re.compile(r"[.\-_A-Za-z0-9]{1,64}\Z")


def put_rule(call: Call, request: requests.PutRule) -> responses.RuleArn:
    """Make a rule or change the one of this name, which keeps its targets."""
    bus = call.registry.get(request.event_bus_name, call.region)
    _check(request)
    existing = bus.rules.get(request.name)
    rule = Rule(
        name=request.name,
        arn=rule_arn(bus.region, bus.name, request.name),
        pattern=_pattern(request.event_pattern),
        pattern_text=request.event_pattern,
        state=request.state,
        description=request.description,
        role_arn=request.role_arn,
        targets={} if existing is None else existing.targets,
    )
    bus.rules[rule.name] = rule
    return responses.RuleArn(rule.arn)


def delete_rule(call: Call, request: requests.NamedRule) -> None:
    """Deleting what is not there succeeds, as in AWS."""
    bus = call.registry.get(request.event_bus_name, call.region)
    rule = bus.rules.get(request.name)
    if rule is None:
        return
    if rule.targets:
        raise validation("Rule can't be deleted since it has targets.")
    del bus.rules[rule.name]


def describe_rule(call: Call, request: requests.NamedRule) -> responses.Rule:
    rule = call.registry.rule(request.name, request.event_bus_name, call.region)
    bus = call.registry.get(request.event_bus_name, call.region)
    return _described(rule, bus, ACCOUNT)


def list_rules(call: Call, request: requests.ListRules) -> responses.Rules:
    bus = call.registry.get(request.event_bus_name, call.region)
    rules = [bus.rules[name] for name in sorted(bus.rules) if name.startswith(request.name_prefix)]
    shown, token = listed(rules, lambda rule: rule.name, request.limit, request.next_token)
    return responses.Rules([_described(rule, bus, None) for rule in shown], token)


def enable_rule(call: Call, request: requests.NamedRule) -> None:
    call.registry.rule(request.name, request.event_bus_name, call.region).state = ENABLED


def disable_rule(call: Call, request: requests.NamedRule) -> None:
    call.registry.rule(request.name, request.event_bus_name, call.region).state = DISABLED


def _check(request: requests.PutRule) -> None:
    if not _NAME.match(request.name):
        raise constraint(
            request.name,
            "name",
            r"Member must satisfy regular expression pattern: [\.\-_A-Za-z0-9]+",
        )
    if request.state not in STATES:
        raise constraint(request.state, "state", f"Member must satisfy enum value set: {STATES}")
    if request.schedule_expression:
        raise unsupported("runs no schedules: give the rule an EventPattern.")
    if not request.event_pattern:
        raise validation("Parameter(s) EventPattern or ScheduleExpression must be specified.")
    if len(request.event_pattern) > MAX_PATTERN_CHARACTERS:
        raise constraint(
            request.event_pattern,
            "eventPattern",
            f"Member must have length less than or equal to {MAX_PATTERN_CHARACTERS}",
        )


def _pattern(text: str) -> Pattern:
    try:
        return compiled(values.decoded(text), numbers_as_written=True)
    except PatternError as error:
        raise invalid_pattern(str(error)) from None
    except ValueError as error:
        raise invalid_pattern(f"Filter is not valid JSON: {error}") from None


def _described(rule: Rule, bus: Bus, created_by: str | None) -> responses.Rule:
    return responses.Rule(
        name=rule.name,
        arn=rule.arn,
        event_pattern=rule.pattern_text,
        state=rule.state,
        description=rule.description,
        role_arn=rule.role_arn,
        event_bus_name=bus.name,
        created_by=created_by,
    )
