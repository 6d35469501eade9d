"""Where an event goes: the first route whose globs match."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import msgspec

from outboxd.core.settings import Envelope, OnExhausted, Ordering, RouteSettings

REMEMBERED_ANSWERS = 4096
"""Event types are few; a producer that makes them up must not fill the memory."""


class Route(msgspec.Struct, frozen=True):
    """Where an event goes, in which envelope, and what its aggregate's other events mean to it."""

    to: tuple[str, ...]
    envelope: Envelope
    ordering: Ordering = "aggregate"
    on_exhausted: OnExhausted = "skip"


class RouteTable:
    """Finds the first of the configured routes that matches, and remembers the answer."""

    def __init__(self, routes: Sequence[RouteSettings]) -> None:
        self._rules = tuple(
            (
                rule,
                Route(
                    tuple(dict.fromkeys(rule.to)), rule.envelope, rule.ordering, rule.on_exhausted
                ),
            )
            for rule in routes
        )
        self._answers: dict[tuple[str, str], Route | None] = {}

    @property
    def destinations(self) -> tuple[str, ...]:
        """Every destination that some route names, each once."""
        return tuple(dict.fromkeys(name for _, route in self._rules for name in route.to))

    def find(self, event_type: str, aggregate_type: str) -> Route | None:
        """The route of an event, or None when no route matches it."""
        kind = (event_type, aggregate_type)
        if kind in self._answers:
            return self._answers[kind]
        if len(self._answers) >= REMEMBERED_ANSWERS:
            self._answers.clear()
        answer = self._answers[kind] = self._first_match(event_type, aggregate_type)
        return answer

    def _first_match(self, event_type: str, aggregate_type: str) -> Route | None:
        for rule, route in self._rules:
            if fnmatchcase(event_type, rule.events) and fnmatchcase(
                aggregate_type, rule.aggregate_type
            ):
                return route
        return None
