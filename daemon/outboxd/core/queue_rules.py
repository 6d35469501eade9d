"""Rules between the settings of queues, their dead-letter queues and their handlers."""

import json
import math
from collections.abc import Iterator
from fnmatch import fnmatchcase

from outboxd.core.batch_rules import batch_problems
from outboxd.core.places import Place
from outboxd.core.roads import queues_behind
from outboxd.core.settings import (
    BackoffSettings,
    HandlerSettings,
    QueueSettings,
    Settings,
    is_fifo,
)

RECEIVE_MARGIN_SECONDS = 2.0
"""How long the answer of a long poll may take beyond its wait."""

SETTLE_SECONDS = 3.0
"""What a stop needs after its last receive, to release and delete."""

LONGEST_INVISIBILITY_SECONDS = 43_200
"""SQS hides a message for 12 hours at the most, counted from its receive."""

LONGEST_QUEUE_NAME = 80

_QUEUES = Place("queues")


def queue_problems(settings: Settings) -> Iterator[str]:
    """What cannot work about each queue by itself."""
    published = published_to(settings)
    for name, queue in settings.queues.items():
        place = _QUEUES.subtable(name)
        yield from _types(settings, name, place)
        yield from _derived_name(settings, name, place)
        yield from _backoff(queue.backoff, place)
        yield from _attempts(queue, place)
        yield from _retention(settings, name, place)
        if queue.handlers:
            yield from _stopping(settings, queue, place)
            yield from _extending(settings, queue, place)
        if not queue.handlers and name not in published:
            yield (
                f"{place} handlers: none, and no route publishes to it, nor does a topic or a "
                f"bus, so it is of no use; add [[{place.table}.handlers]]"
            )


def published_to(settings: Settings) -> frozenset[str]:
    """The tables of [queues] that some route, topic or bus sends to."""
    return frozenset().union(*queues_behind(settings).values())


def _types(settings: Settings, name: str, place: Place) -> Iterator[str]:
    called, letters = settings.sqs_queue_name(name), settings.dead_letter_name(name)
    if is_fifo(called) == is_fifo(letters):
        return
    odd, own, remedy = (
        ("a standard queue", "a FIFO queue", 'name one that ends in ".fifo"')
        if is_fifo(called)
        else ("a FIFO queue", "a standard queue", 'name one without ".fifo"')
    )
    yield (
        f'{place} dead_letter: "{letters}" is {odd}, but "{called}" is {own}, and SQS wants both '
        f"of the same type; {remedy}"
    )


def _derived_name(settings: Settings, name: str, place: Place) -> Iterator[str]:
    letters = settings.dead_letter_name(name)
    if len(letters) > LONGEST_QUEUE_NAME:
        yield (
            f'{place} dead_letter: the default, "{letters}", is longer than the '
            f"{LONGEST_QUEUE_NAME} characters that SQS allows; name one"
        )


def _stopping(settings: Settings, queue: QueueSettings, place: Place) -> Iterator[str]:
    supervisor = settings.supervisor
    allowed = supervisor.grace_seconds - supervisor.escalation_seconds
    spent = RECEIVE_MARGIN_SECONDS + SETTLE_SECONDS
    if allowed > 0 and queue.wait_seconds + spent > allowed:
        # A wait of 0 would be allowed, but polls all the time, and each poll is paid for.
        longest = math.floor(allowed - spent)
        remedy = f"lower it to at most {longest}, or " if longest >= 1 else ""
        grace = queue.wait_seconds + spent + supervisor.escalation_seconds
        yield (
            f"{place} wait_seconds: waiting {queue.wait_seconds} s + {spent:g} s to settle exceed "
            f"the {allowed:g} s that a stop has ([supervisor] grace_seconds - escalation_seconds), "
            f"so a stop would end in a kill; {remedy}raise grace_seconds to "
            f"at least {grace:g}"
        )


def _extending(settings: Settings, queue: QueueSettings, place: Place) -> Iterator[str]:
    connecting = settings.aws.connect_timeout_seconds
    if queue.visibility_seconds / 2 <= connecting:
        yield (
            f"{place} visibility_seconds: leases are extended at half of it, "
            f"{queue.visibility_seconds / 2:g} s, in which a call must be possible: "
            f"raise it above 2 x [aws] connect_timeout_seconds ({2 * connecting:g} s)"
        )


def _backoff(backoff: BackoffSettings, place: Place) -> Iterator[str]:
    """Listed delays take the place of both."""
    if not backoff.delays_seconds and backoff.first_seconds > backoff.cap_seconds:
        yield (
            f"{place} backoff: first_seconds ({backoff.first_seconds:g}) is above "
            f"cap_seconds ({backoff.cap_seconds:g})"
        )


def _attempts(queue: QueueSettings, place: Place) -> Iterator[str]:
    attempts = max([queue.max_attempts, *(each.max_attempts or 0 for each in queue.handlers)])
    if queue.max_receive_count < 4 * attempts:
        yield (
            f"{place} max_receive_count: SQS counts releases and crashes too, so below 4 x "
            f"max_attempts ({4 * attempts}) deploys would dead-letter healthy messages, "
            "without a reason"
        )


def _retention(settings: Settings, name: str, place: Place) -> Iterator[str]:
    """A FIFO queue may do as it likes: its dead-letter queue counts from a letter's arrival (SQS
    developer guide, "dead-letter queues")."""
    queue = settings.queues[name]
    standard = not is_fifo(settings.sqs_queue_name(name))
    if standard and queue.dead_letter_retention_days < queue.retention_days:
        yield (
            f"{place} dead_letter_retention_days: {queue.dead_letter_retention_days:g} is below "
            f"retention_days ({queue.retention_days:g}); a dead letter keeps the age of its "
            "message, so it could be deleted on arrival"
        )


def shared_queue_problems(settings: Settings) -> Iterator[str]:
    """Two tables that consume the same queue: each would see half of the messages."""
    owners: dict[str, str] = {}
    for name in settings.queues:
        called = settings.sqs_queue_name(name)
        owner = owners.setdefault(called, name)
        if owner != name:
            yield (
                f'{_QUEUES.subtable(name)} queue_name: "{called}" is already consumed by '
                f"{_QUEUES.subtable(owner)}; each would see only some of the messages"
            )


def dead_letter_problems(settings: Settings) -> Iterator[str]:
    """Dead letters that come back, and dead-letter queues that two tables want differently.

    A consumed dead-letter queue and one that several queues share are allowed: both are ways to
    care for dead letters.
    """
    consumed = {settings.sqs_queue_name(name): name for name in settings.queues}
    retentions: dict[str, tuple[float, str]] = {
        called: (settings.queues[name].retention_days, name) for called, name in consumed.items()
    }
    for name, queue in settings.queues.items():
        place = _QUEUES.subtable(name)
        letters = settings.dead_letter_name(name)
        if _returns(settings, consumed, name):
            yield (
                f'{place} dead_letter: letters to "{letters}" come back to this queue, '
                "so a poison message would circle forever"
            )
            continue
        days, other = retentions.setdefault(letters, (queue.dead_letter_retention_days, name))
        if days != queue.dead_letter_retention_days:
            yield (
                f"{place} dead_letter_retention_days: {queue.dead_letter_retention_days:g} for "
                f'"{letters}", for which {_QUEUES.subtable(other)} says {days:g}'
            )


def _returns(settings: Settings, consumed: dict[str, str], name: str) -> bool:
    """Whether following dead letters from this queue leads back to it."""
    seen: set[str] = set()
    at: str | None = name
    while at is not None and at not in seen:
        seen.add(at)
        at = consumed.get(settings.dead_letter_name(at))
        if at == name:
            return True
    return False


def handler_problems(settings: Settings) -> Iterator[str]:
    """Names that are taken twice, handlers that together take longer than SQS allows, and batches
    that could not be."""
    owners: dict[str, Place] = {}
    for queue_name, queue in settings.queues.items():
        for number, handler in enumerate(queue.handlers, start=1):
            place = _QUEUES.subtable(queue_name).subtable("handlers").element(number, handler.name)
            if handler.name in owners:
                yield (
                    f'{place}: the name "{handler.name}" is taken by {owners[handler.name]}; '
                    "one would take the other's inbox marks for its own and never run"
                )
            owners.setdefault(handler.name, place)
            yield from _too_long(handler, queue, place)
            if handler.backoff is not None:
                yield from _backoff(handler.backoff, place)
            yield from batch_problems(handler, queue, settings.sqs_queue_name(queue_name), place)


def _too_long(handler: HandlerSettings, queue: QueueSettings, place: Place) -> Iterator[str]:
    together = sum(
        each.timeout_seconds for each in queue.handlers if fnmatchcase(handler.event, each.event)
    )
    if together > LONGEST_INVISIBILITY_SECONDS:
        yield (
            f"{place} timeout_seconds: the handlers of {json.dumps(handler.event)} may take "
            f"{together:g} s together, but SQS hides a message for at most "
            f"{LONGEST_INVISIBILITY_SECONDS} s"
        )
