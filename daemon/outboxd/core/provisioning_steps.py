"""What it takes to make topics, buses and what hangs on them as they are wanted."""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeAlias

import msgspec

from outboxd.core.provisioning import Action, Change, TypeConflict
from outboxd.core.provisioning_fan_out import (
    FanOut,
    WantedBus,
    WantedPolicy,
    WantedRule,
    WantedSubscription,
    WantedTopic,
    canonical,
)
from outboxd.core.queue_policies import EVENTBRIDGE_STATEMENT, SNS_STATEMENT, admitted, name_in
from outboxd.core.settings import is_fifo

Wanted: TypeAlias = WantedTopic | WantedBus | WantedPolicy | WantedSubscription | WantedRule


class Item(StrEnum):
    """The kinds of things, in words."""

    TOPIC = "topic"
    BUS = "bus"
    POLICY = "policy of queue"
    SUBSCRIPTION = "subscription"
    RULE = "rule"


class ExistingRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that there is; `targets` are its queues with their dead-letter queues, by name."""

    pattern: str
    targets: dict[str, str | None]
    enabled: bool = True


class Existing(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of what is wanted: the attributes of topics by name, those of subscriptions by
    topic and queue, buses, rules by bus and name, and the policies of queues."""

    topics: Mapping[str, Mapping[str, str]] = {}
    subscriptions: Mapping[tuple[str, str], Mapping[str, str]] = {}
    buses: frozenset[str] = frozenset()
    rules: Mapping[tuple[str, str], ExistingRule] = {}
    policies: Mapping[str, str] = {}


class FanOutStep(msgspec.Struct, frozen=True, kw_only=True):
    """One thing's part of a plan."""

    item: Item
    wanted: Wanted
    action: Action
    changes: tuple[Change, ...] = ()


def plan_fan_out(wanted: FanOut, existing: Existing) -> tuple[FanOutStep, ...]:
    """One step for each thing, in an order that can be carried out and loses nothing: a queue lets
    a topic or a rule in before it sends.

    Raises TypeConflict for a topic that is of the other type.
    """
    for topic in wanted.topics:
        _check_type(topic, existing.topics.get(topic.name))
    return (
        *(_topic(topic, existing.topics.get(topic.name)) for topic in wanted.topics),
        *(_bus(bus, existing.buses) for bus in wanted.buses),
        *(_policy(policy, existing.policies.get(policy.queue)) for policy in wanted.policies),
        *(
            _subscription(each, existing.subscriptions.get((each.topic, each.queue)))
            for each in wanted.subscriptions
        ),
        *(_rule(rule, existing.rules.get((rule.bus, rule.rule))) for rule in wanted.rules),
    )


def _check_type(topic: WantedTopic, attributes: Mapping[str, str] | None) -> None:
    if attributes is None or (attributes.get("FifoTopic") == "true") == is_fifo(topic.name):
        return
    there, wanted = ("a standard", "a FIFO") if is_fifo(topic.name) else ("a FIFO", "a standard")
    raise TypeConflict(
        f"topic {topic.name} exists and is {there} topic, where the configuration needs {wanted} "
        "topic; a topic cannot change its type: delete it, or use another name"
    )


def _topic(topic: WantedTopic, attributes: Mapping[str, str] | None) -> FanOutStep:
    if attributes is not None or topic.arn is not None:
        return FanOutStep(item=Item.TOPIC, wanted=topic, action=Action.UNCHANGED)
    changes = tuple(
        Change(attribute=name, old=None, new=value) for name, value in topic.created_with.items()
    )
    return FanOutStep(item=Item.TOPIC, wanted=topic, action=Action.CREATE, changes=changes)


def _bus(bus: WantedBus, existing: frozenset[str]) -> FanOutStep:
    action = Action.UNCHANGED if bus.name in existing else Action.CREATE
    return FanOutStep(item=Item.BUS, wanted=bus, action=action)


def _policy(policy: WantedPolicy, text: str | None) -> FanOutStep:
    topics = {name_in(arn) for arn in admitted(text, SNS_STATEMENT)}
    rules = {name_in(arn) for arn in admitted(text, EVENTBRIDGE_STATEMENT)}
    changes = tuple(
        Change(attribute=attribute, old=_listed(there) or None, new=_listed(there | wanted))
        for attribute, there, wanted in (
            ("topics that may send", topics, policy.topics),
            ("rules that may send", rules, policy.rules),
        )
        if not wanted <= there
    )
    new = not topics and not rules
    return FanOutStep(
        item=Item.POLICY, wanted=policy, action=_action(changes, new), changes=changes
    )


def _subscription(
    subscription: WantedSubscription, attributes: Mapping[str, str] | None
) -> FanOutStep:
    changes = tuple(_subscription_changes(subscription, attributes or {}))
    action = _action(changes, new=attributes is None)
    return FanOutStep(item=Item.SUBSCRIPTION, wanted=subscription, action=action, changes=changes)


def _subscription_changes(
    wanted: WantedSubscription, attributes: Mapping[str, str]
) -> Iterator[Change]:
    raw = "true" if wanted.raw else "false"
    if (old := attributes.get("RawMessageDelivery")) != raw:
        yield Change(attribute="RawMessageDelivery", old=old, new=raw)
    policy = attributes.get("FilterPolicy") or "{}"
    scope = attributes.get("FilterPolicyScope") or "MessageAttributes"
    filtered = wanted.filter_policy != "{}"
    # The scope first: a policy is judged by it.
    if filtered and scope != wanted.filter_scope:
        yield Change(attribute="FilterPolicyScope", old=scope, new=wanted.filter_scope)
    if (old := canonical(json.loads(policy))) != wanted.filter_policy:
        yield Change(
            attribute="FilterPolicy", old=None if old == "{}" else old, new=wanted.filter_policy
        )
    old_letters = _letters(attributes.get("RedrivePolicy"))
    if wanted.dead_letter is not None and old_letters != wanted.dead_letter:
        yield Change(attribute="dead letters", old=old_letters, new=wanted.dead_letter)


def _rule(rule: WantedRule, existing: ExistingRule | None) -> FanOutStep:
    changes = tuple(_rule_changes(rule, existing))
    action = _action(changes, new=existing is None)
    return FanOutStep(item=Item.RULE, wanted=rule, action=action, changes=changes)


def _rule_changes(rule: WantedRule, existing: ExistingRule | None) -> Iterator[Change]:
    old = None if existing is None else canonical(json.loads(existing.pattern))
    if old != rule.pattern:
        yield Change(attribute="EventPattern", old=old, new=rule.pattern)
    there = {} if existing is None else existing.targets
    for queue, letters in rule.targets.items():
        if queue not in there:
            new = f"{queue}, dead letters to {letters}"
            yield Change(attribute="target", old=None, new=new)
        elif there[queue] != letters:
            yield Change(attribute=f"dead letters of {queue}", old=there[queue], new=letters)


def _action(changes: tuple[Change, ...], new: bool) -> Action:
    if not changes:
        return Action.UNCHANGED
    return Action.CREATE if new else Action.UPDATE


def _letters(policy: str | None) -> str | None:
    """The name of the dead-letter queue in a subscription's redrive policy."""
    if not policy:
        return None
    return str(json.loads(policy).get("deadLetterTargetArn", "")).rpartition(":")[2] or None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
