"""A handler that takes batches: which events it is given, and what became of all of them."""

from collections.abc import Sequence, Set
from typing import Any, NamedTuple, assert_never
from uuid import UUID

from outboxd.adapters.handlers.invocation import Invocation, event_of, invocation_of_many
from outboxd.adapters.handlers.loading import LoadedHandler
from outboxd.core.events import Event
from outboxd.core.judging import Away, Busy, Ending, Raised, Returned, TimedOut, spent
from outboxd.core.outcomes import Done
from outboxd.ports.handling import BatchDone, BatchEnding, BatchFailed, Call


class Batch(NamedTuple):
    """The events of some calls, by position; those whose payload does not fit are left out."""

    handler: LoadedHandler
    calls: Sequence[Call]
    events: dict[int, Event[Any]]

    @property
    def event_ids(self) -> Set[UUID]:
        return {event.id for event in self.events.values()}

    @property
    def left_out(self) -> frozenset[int]:
        return frozenset(range(len(self.calls))) - self.events.keys()

    def firsts(self, new: Set[UUID]) -> dict[int, Event[Any]]:
        """The new events in the order given, each of them once."""
        seen: set[UUID] = set()
        firsts: dict[int, Event[Any]] = {}
        for position, event in self.events.items():
            if event.id in new and event.id not in seen:
                seen.add(event.id)
                firsts[position] = event
        return firsts

    def invocation(self, events: dict[int, Event[Any]]) -> Invocation:
        """The call of the handler with these events."""
        return invocation_of_many(self.handler, self.calls[0], list(events.values()))

    def ending(self, ending: Ending, called: dict[int, Event[Any]]) -> BatchEnding:
        """What the handler's ending means for the batch, of which it was given the events `called`;
        what it was not given is a duplicate."""
        match ending:
            case Returned(outcome=Done()):
                return BatchDone(frozenset(self.events.keys() - called.keys()), self.left_out)
            case Busy() | Away():
                return ending
            case Returned() | Raised() | TimedOut():
                return BatchFailed(spent(ending) or "the handler asked to be called again")
            case _:
                assert_never(ending)


def batch_of(handler: LoadedHandler, calls: Sequence[Call]) -> Batch:
    """The batch of these calls."""
    events: dict[int, Event[Any]] = {}
    for position, call in enumerate(calls):
        event = event_of(handler, call)
        if isinstance(event, Event):
            events[position] = event
    return Batch(handler, calls, events)
