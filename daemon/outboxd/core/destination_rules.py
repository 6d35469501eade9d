"""Rules between the settings of topics and buses, and between them and the queues."""

import json
from collections.abc import Iterator, Sequence

from outboxd.core.destinations import SqsTarget, target_of, topic_of
from outboxd.core.errors import SettingsError
from outboxd.core.event_patterns import Untranslatable, conditions
from outboxd.core.expectations import suggestion
from outboxd.core.places import Place
from outboxd.core.provisioning_fan_out import type_key
from outboxd.core.settings import (
    EventBridgeSettings,
    RuleSettings,
    Settings,
    SnsSettings,
    SubscriptionSettings,
    is_fifo,
)

_DESTINATIONS = Place("destinations")


def destination_problems(settings: Settings) -> Iterator[str]:
    """What cannot work about each topic and bus."""
    topics: dict[str, Place] = {}
    for name, topic in settings.destinations.sns.items():
        place = _DESTINATIONS.subtable("sns").subtable(name)
        owner = topics.setdefault(topic_of(name, topic).topic_name, place)
        if owner != place:
            yield f"{place}: is the topic of {owner} again; keep one of them"
        yield from _topic(settings, name, topic, place)
    rules: dict[tuple[str, str], Place] = {}
    for name, bus in settings.destinations.eventbridge.items():
        place = _DESTINATIONS.subtable("eventbridge").subtable(name)
        yield from _bus(settings, name, bus, place, rules)


def _topic(settings: Settings, name: str, topic: SnsSettings, place: Place) -> Iterator[str]:
    target = topic_of(name, topic)
    if topic.arn is not None and topic.topic_name not in (None, target.topic_name):
        yield f"{place} arn: is of another topic than topic_name; keep one of them"
    if topic.arn is not None:
        region = topic.arn.split(":")[3]
        if region != settings.aws.region:
            yield (
                f"{place} arn: the topic is in {region}, but [aws] region is "
                f"{settings.aws.region}, and SNS publishes within a region only"
            )
    if target.fifo and topic.fair_groups:
        yield f"{place} fair_groups: a FIFO topic has message groups anyway; remove it"
    seen: set[str] = set()
    for number, subscription in enumerate(topic.subscriptions, start=1):
        here = place.subtable("subscriptions").element(number)
        if subscription.queue in seen:
            yield f'{here} queue: "{subscription.queue}" is subscribed above; SNS allows it once'
        seen.add(subscription.queue)
        yield from _subscribed_queue(settings, subscription, target.fifo, here)
        yield from _filter(subscription, here)


def _subscribed_queue(
    settings: Settings, subscription: SubscriptionSettings, fifo: bool, place: Place
) -> Iterator[str]:
    if subscription.queue not in settings.queues:
        yield f"{place} queue: {_no_table(subscription.queue, settings)}"
    elif is_fifo(settings.sqs_queue_name(subscription.queue)) and not fifo:
        yield (
            f'{place} queue: "{subscription.queue}" is a FIFO queue, and SNS delivers to those '
            "from FIFO topics only"
        )


def _filter(subscription: SubscriptionSettings, place: Place) -> Iterator[str]:
    try:
        conditions(subscription.events, wildcards=False)
    except Untranslatable as error:
        yield f"{place} events: {error}"
    if subscription.filter is None:
        return
    try:
        policy = json.loads(subscription.filter)
    except ValueError as error:
        yield f"{place} filter: is no JSON: {error}"
        return
    if not isinstance(policy, dict) or not policy:
        yield f'{place} filter: expected a JSON object, as {{"aggregate_id": [{{"prefix": "a"}}]}}'
    elif subscription.events and type_key(subscription) in policy:
        yield (
            f'{place} filter: asks for "{type_key(subscription)}" as events does; leave one of '
            "them out"
        )


def _bus(
    settings: Settings,
    name: str,
    bus: EventBridgeSettings,
    place: Place,
    rules: dict[tuple[str, str], Place],
) -> Iterator[str]:
    for number, rule in enumerate(bus.rules, start=1):
        here = place.subtable("rules").element(number, rule.name)
        owner = rules.setdefault((bus.bus_name or name, rule.name), here)
        if owner != here:
            yield f'{here} name: the bus has a rule "{rule.name}" by {owner}'
        yield from _targets(settings, rule.to, here)
        yield from _patterns(rule, here)


def _targets(settings: Settings, targets: Sequence[str], place: Place) -> Iterator[str]:
    for destination in dict.fromkeys(targets):
        quoted = json.dumps(destination, ensure_ascii=False)
        if targets.count(destination) > 1:
            yield f"{place} to: names {quoted} twice"
        try:
            target = target_of(destination, settings)
        except SettingsError:
            target = None
        if not isinstance(target, SqsTarget):
            yield f'{place} to: {quoted}: a rule sends to "sqs:<a table of [queues]>" only'
            continue
        queue = destination.partition(":")[2]
        if queue not in settings.queues:
            yield f"{place} to: {_no_table(queue, settings)}"
        elif target.fifo:
            yield (
                f"{place} to: {quoted} is a FIFO queue, for which EventBridge keeps no order and "
                "has one message group for all events; route to the queue itself, or to a FIFO "
                "topic"
            )


def _patterns(rule: RuleSettings, place: Place) -> Iterator[str]:
    try:
        conditions(rule.events, wildcards=True)
    except Untranslatable as error:
        yield f"{place} events: {error}"


def _no_table(queue: str, settings: Settings) -> str:
    near = suggestion(queue, list(settings.queues))
    return f"there is no {Place('queues').subtable(queue)}{near}"
