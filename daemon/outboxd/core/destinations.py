"""What stands behind the name of a destination, such as "sns:order-topic"."""

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from outboxd.core.errors import SettingsError
from outboxd.core.expectations import suggestion
from outboxd.core.places import Place
from outboxd.core.settings import Settings, SnsSettings, is_fifo

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,80}\Z")
_TOPIC_NAME = re.compile(r"(?:[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo)\Z")

_DESTINATIONS = Place("destinations")


class SqsTarget(msgspec.Struct, frozen=True):
    """A queue, by its name in SQS; `fair_groups` gives messages of a standard one a group too."""

    queue_name: str
    fair_groups: bool = False

    @property
    def fifo(self) -> bool:
        return is_fifo(self.queue_name)


class SnsTarget(msgspec.Struct, frozen=True):
    """A topic, by its name; without an `arn` it is looked up among the topics of the region."""

    topic_name: str
    arn: str | None = None
    fair_groups: bool = False

    @property
    def fifo(self) -> bool:
        return is_fifo(self.topic_name)


class EventBridgeTarget(msgspec.Struct, frozen=True):
    """A bus, and the source that its events name."""

    bus_name: str
    source: str


class LogTarget(msgspec.Struct, frozen=True):
    """The daemon's own log."""

    name: str


class MemoryTarget(msgspec.Struct, frozen=True):
    """A list in this process, for tests."""

    name: str


Target: TypeAlias = SqsTarget | SnsTarget | EventBridgeTarget | LogTarget | MemoryTarget


def target_of(destination: str, settings: Settings) -> Target:
    """What "<kind>:<name>" means by these settings. Raises SettingsError if it means nothing.

    The name of a queue or a topic is that of its table or, without a table, its own: a queue that
    somebody else consumes, for one.
    """
    kind, separator, name = destination.partition(":")
    means = _KINDS.get(kind)
    if means is None or not separator or not name:
        raise SettingsError([_unknown(destination, settings)])
    return means(name, settings)


def destination_problem(destination: str, settings: Settings) -> str | None:
    """Why a route cannot name this destination. Stricter than `target_of`: a queue without a table
    is more likely to be a mistake than somebody else's."""
    try:
        target = target_of(destination, settings)
    except SettingsError as error:
        return error.problems[0]
    kind, _, name = destination.partition(":")
    match target:
        case SqsTarget() if name not in settings.queues:
            near = suggestion(destination, [f"sqs:{queue}" for queue in settings.queues])
            return f"{_quoted(destination)}: there is no {Place('queues').subtable(name)}{near}"
        case SnsTarget() if name not in settings.destinations.sns and (
            near := suggestion(name, list(settings.destinations.sns))
        ):
            table = _DESTINATIONS.subtable(kind).subtable(name)
            return (
                f"{_quoted(destination)}: there is no {table}{near} (for a topic of that very "
                "name, add the table)"
            )
        case _:
            return None


def topic_of(name: str, topic: SnsSettings) -> SnsTarget:
    """The topic behind a table of [destinations.sns]."""
    if topic.arn is not None:
        return SnsTarget(topic.arn.rpartition(":")[2], topic.arn, topic.fair_groups)
    return SnsTarget(topic.topic_name or name, None, topic.fair_groups)


def _sqs(name: str, settings: Settings) -> SqsTarget:
    if name not in settings.queues:
        return SqsTarget(name)
    return SqsTarget(settings.sqs_queue_name(name), settings.queues[name].fair_groups)


def _sns(name: str, settings: Settings) -> SnsTarget:
    table = settings.destinations.sns.get(name)
    if table is None and not _TOPIC_NAME.match(name):
        raise SettingsError(
            [
                f"{_quoted(f'sns:{name}')}: this is no name of a topic; give a topic's ARN as arn "
                "in a table [destinations.sns.<name>]"
            ]
        )
    return topic_of(name, SnsSettings() if table is None else table)


def _eventbridge(name: str, settings: Settings) -> EventBridgeTarget:
    bus = settings.destinations.eventbridge.get(name)
    if bus is None:
        table = _DESTINATIONS.subtable("eventbridge").subtable(name)
        near = suggestion(name, list(settings.destinations.eventbridge))
        raise SettingsError(
            [
                f"{_quoted(f'eventbridge:{name}')}: there is no {table}, which says what source "
                f"the events have{near}"
            ]
        )
    return EventBridgeTarget(bus.bus_name or name, bus.source)


def _log(name: str, _: Settings) -> LogTarget:
    return LogTarget(_plain("log", name))


def _memory(name: str, _: Settings) -> MemoryTarget:
    return MemoryTarget(_plain("memory", name))


def _plain(kind: str, name: str) -> str:
    if not _PLAIN_NAME.match(name):
        raise SettingsError(
            [
                f"{_quoted(f'{kind}:{name}')}: expected 1 to 80 letters, digits and any of . _ - "
                f'behind "{kind}:"'
            ]
        )
    return name


_KINDS: Mapping[str, Callable[[str, Settings], Target]] = {
    "sqs": _sqs,
    "sns": _sns,
    "eventbridge": _eventbridge,
    "log": _log,
    "memory": _memory,
}


def _unknown(destination: str, settings: Settings) -> str:
    offer = ""
    if destination in settings.queues:
        offer = f'; did you mean "sqs:{destination}"?'
    return (
        f"{_quoted(destination)}: unknown destination; expected "
        '"sqs:<a table of [queues]>", "sns:<topic>", "eventbridge:<a table of '
        '[destinations.eventbridge]>", "log:<name>" or "memory:<name>"' + offer
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
