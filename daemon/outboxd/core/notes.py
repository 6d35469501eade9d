"""What is not wrong with a configuration, but may not be what was meant."""

import json
from collections.abc import Iterator, Sequence

from outboxd.core.globs import is_literal, may_meet
from outboxd.core.places import Place
from outboxd.core.roads import queues_behind
from outboxd.core.settings import RouteSettings, Settings


def notes(settings: Settings) -> list[str]:
    """One line for each thing to think about, in the order of the file; for good settings only."""
    return list(_unpublished(settings))


def _unpublished(settings: Settings) -> Iterator[str]:
    """Handlers of events that the relay, of which there is one here, sends to no queue of theirs.

    A topic or a bus that leads there counts, whatever its filters. Somebody else may send, so this
    is no problem. A queue that is fed by the dead letters of another gets what that other one gets.
    """
    if settings.relay is None:
        return
    behind = queues_behind(settings)
    letters = {settings.dead_letter_name(name) for name in settings.queues}
    for name, queue in settings.queues.items():
        if settings.sqs_queue_name(name) in letters:
            continue
        table = Place("queues").subtable(name).subtable("handlers")
        roads = frozenset(road for road, ends in behind.items() if name in ends)
        for number, handler in enumerate(queue.handlers, start=1):
            if not _published(handler.event, roads, settings.relay.routes):
                yield (
                    f"{table.element(number, handler.name)}: no route here publishes "
                    f"{json.dumps(handler.event, ensure_ascii=False)} to this queue; "
                    "fine if something else does"
                )


def _published(event: str, roads: frozenset[str], routes: Sequence[RouteSettings]) -> bool:
    """Whether an event that the glob matches can take one of the roads; the first fitting route
    counts."""
    for route in routes:
        if may_meet(route.events, event):
            if not roads.isdisjoint(route.to):
                return True
            if route.aggregate_type == "*" and _takes_all(route.events, event):
                return False
    return False


def _takes_all(events: str, event: str) -> bool:
    """Whether globs that meet leave nothing of `event` to a later route, as far as can be told."""
    return events in ("*", event) or is_literal(event)
