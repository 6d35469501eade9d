"""Which rows of the outbox a person asks for, and globs as PostgreSQL understands them."""

import re
from collections.abc import Iterator
from enum import StrEnum
from uuid import UUID

import msgspec

from outboxd.core.settings import RouteSettings, Settings

Target = UUID | int
"""An event by its id, or by its place in the outbox (`seq`)."""


class State(StrEnum):
    """What a person may ask for; `core.outbox_standing` says what each is."""

    PENDING = "pending"
    FAILING = "failing"
    STOPPED = "stopped"
    HELD = "held"
    BLOCKED = "blocked"
    DEAD = "dead"
    DISCARDED = "discarded"
    PUBLISHED = "published"


UNPUBLISHED = frozenset({State.PENDING, State.FAILING, State.STOPPED, State.HELD, State.BLOCKED})
"""Those of rows that the relay has still to publish; PENDING is all of them."""


class Selection(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rows of one state that fulfil every condition; None is no condition.

    `type` is a glob. `older_than_seconds` counts from the event's insert.
    """

    state: State
    type: str | None = None
    aggregate: tuple[str, str] | None = None
    older_than_seconds: float | None = None

    @property
    def narrows(self) -> bool:
        """Whether there may be rows of that state which are not wanted."""
        conditions = (self.type, self.aggregate, self.older_than_seconds)
        return any(condition is not None for condition in conditions)


class Globs(msgspec.Struct, frozen=True):
    """The globs of the routes as regular expressions, two of each: event and aggregate type."""

    events: list[str] = []
    aggregates: list[str] = []
    ordered: list[bool] = []
    """Whether a route keeps the order of an aggregate; of several that match, the first counts."""
    hold: bool = False
    """Whether what matches none of them is held; else the relay buries or drops it."""


def route_globs(settings: Settings) -> Globs:
    """What is needed to find rows without a route; without [relay] nobody here can tell."""
    if settings.relay is None:
        return Globs()
    routes: tuple[RouteSettings, ...] = settings.relay.routes
    return Globs(
        [glob_regex(route.events) for route in routes],
        [glob_regex(route.aggregate_type) for route in routes],
        [route.ordering == "aggregate" for route in routes],
        settings.relay.on_unrouted == "hold",
    )


def glob_regex(glob: str) -> str:
    """A regular expression of PostgreSQL for the texts that `fnmatchcase` finds to match.

    The relay matches in Python; a listing of millions of rows must not bring them here to do so.
    """
    return f"^(?:{''.join(_translated(glob))})$"


def _translated(glob: str) -> Iterator[str]:
    at = 0
    while at < len(glob):
        sign = glob[at]
        end = at + 1
        match sign:
            case "*":
                yield ".*"
            case "?":
                yield "."
            case "[" if (end := _end_of_set(glob, at)) > at + 1:
                yield _set(glob[at + 1 : end - 1])
            case _:
                yield _literal(sign)
        at = end


def _set(content: str) -> str:
    """A bracket expression; ranges that run backwards match nothing, as in Python."""
    negated = content.startswith("!")
    body = content.removeprefix("!")
    parts: list[str] = []
    at = 0
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            low, high = body[at], body[at + 2]
            if low <= high:
                parts.append(f"{_in_set(low)}-{_in_set(high)}")
            at += 3
        else:
            parts.append(_in_set(body[at]))
            at += 1
    if not parts:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _end_of_set(glob: str, start: int) -> int:
    """Behind the set that starts here; a bracket that is never closed stands for itself."""
    first = start + 2 if glob.startswith("!", start + 1) else start + 1
    closing = glob.find("]", first + 1)  # one that comes first belongs to the set
    return start + 1 if closing < 0 else closing + 1


def _literal(sign: str) -> str:
    return sign if re.fullmatch(r"[A-Za-z0-9_]", sign) else f"\\U{ord(sign):08x}"


_in_set = _literal
"""Escapes are understood within brackets as well."""
