"""What is put through the daemon: innocent events, and poison of which every piece is known."""

import random
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct

from outboxd import NewEvent

HANDLERS: dict[str, tuple[str, ...]] = {
    "fast.sync": ("fast_sync",),
    "fast.async": ("fast_async",),
    "slow.sync": ("slow_sync",),
    "slow.async": ("slow_async",),
    "flaky": ("flaky",),
    "two": ("two_first", "two_second"),
    "parent": ("parent",),
    "child": ("child",),
    "ordered": ("ordered",),
    "half": ("half_good",),
}
"""By event type: the handlers whose effects must be in the table, each once for every event."""

AFTER = "after"
"""The type whose effects are in a file: its inbox mode promises at least one, not one."""

ORDERED = "ordered"
GROUPS = range(100)
BUSY = [1 / (1 + group) for group in GROUPS]
"""How often each group is chosen: a pool seldom has two messages of one group in hand unless some
groups are much busier than others."""

SHARES = {
    "fast.sync": 30,
    "fast.async": 23,
    "two": 8,
    "parent": 5,
    AFTER: 5,
    "flaky": 4,
    "slow.sync": 1,
    "slow.async": 1,
    ORDERED: 23,
}
"""How many of a hundred events are of which type."""

FOREVER_SECONDS = 3600

LONG_SHARE = 0.2
"""Of the slow ones, those that outlast the visibility timeout."""

PUBLISHED_POISON = {
    "nobody.knows": "unknown_type",
    "reject": "rejected",
    "unfit": "invalid_payload",
    "fail": "max_attempts",
    "half": "rejected",
    "crash": "crash",
    "hang": "timeout",
    "ordered.reject": "rejected",
    "ordered.fail": "max_attempts",
    "ordered.crash": "crash",
    "ordered.hang": "timeout",
}
"""Poison that goes through the outbox, and the reason that each kind must end with."""

MALFORMED = "malformed"
UNCOMMON = {"crash": 0.34, "hang": 0.34, "ordered.crash": 0.34, "ordered.hang": 0.34}
"""Each of these costs its pool several lives, so there are fewer."""


class Piece(Struct, frozen=True, kw_only=True):
    """One event to publish; `poison` is the reason that it must be dead-lettered with."""

    event: NewEvent
    poison: str | None = None


class Workload(Struct, frozen=True):
    """Everything in the order of its publication; `malformed` are bodies for the queue itself."""

    pieces: tuple[Piece, ...]
    malformed: tuple[str, ...]

    @property
    def poison(self) -> dict[str, str]:
        """By id of the event, or by the body of what is no event: the reason it must end with."""
        return {
            **{str(p.event.id): p.poison for p in self.pieces if p.poison is not None},
            **dict.fromkeys(self.malformed, MALFORMED),
        }


def workload(events: int, poison: int, without: Sequence[str], dice: random.Random) -> Workload:
    """So many innocent events, and so many of each kind of poison, except for the kinds and types
    in `without`."""
    pieces = [Piece(event=event) for event in _innocent(events, without, dice)]
    for kind, reason in PUBLISHED_POISON.items():
        if kind in without or (kind.startswith(ORDERED) and ORDERED in without):
            continue
        count = max(1, round(poison * UNCOMMON.get(kind, 1.0)))
        for _ in range(count):
            piece = Piece(event=_poison(kind, dice), poison=reason)
            pieces.insert(dice.randrange(len(pieces) + 1), piece)
    malformed = tuple(f'{{"no event": {number}' for number in range(poison))
    return Workload(tuple(pieces), malformed)


def _innocent(events: int, without: Sequence[str], dice: random.Random) -> Iterator[NewEvent]:
    types = [each for each in SHARES if each not in without]
    positions = [0 for _ in GROUPS]
    for number, kind in enumerate(dice.choices(types, [SHARES[t] for t in types], k=events)):
        if kind == ORDERED:
            group = _group(dice)
            positions[group] += 1
            failures = int(dice.random() < 0.12)
            payload = {"position": positions[group], "failures": failures}
            yield _event(kind, f"group-{group}", payload, dice)
        else:
            yield _event(kind, f"{kind}-{number}", _payload(kind, dice), dice)


def _payload(kind: str, dice: random.Random) -> dict[str, Any]:
    match kind:
        case "slow.sync" | "slow.async":
            longest = dice.random() < LONG_SHARE
            return {"seconds": dice.uniform(8, 12) if longest else dice.uniform(0.5, 3)}
        case "flaky":
            return {"failures": dice.randint(1, 2)}
        case "two":
            return {"failures": int(dice.random() < 0.2)}
        case _:
            return {}


def _poison(kind: str, dice: random.Random) -> NewEvent:
    match kind:
        case "unfit":
            return _event("fast.sync", f"unfit-{dice.random()}", {"seconds": "soon"}, dice)
        case _:
            seconds = FOREVER_SECONDS if kind.endswith("hang") else 0
            in_order = kind.startswith(ORDERED)
            aggregate = f"group-{_group(dice)}" if in_order else f"{kind}-{dice.random()}"
            return _event(kind, aggregate, {"seconds": seconds}, dice)


def _group(dice: random.Random) -> int:
    return dice.choices(GROUPS, BUSY)[0]


def _event(kind: str, aggregate: str, payload: dict[str, Any], dice: random.Random) -> NewEvent:
    """Its id is of the dice too, so that a seed names the same events again."""
    return NewEvent(
        kind, "chaos", aggregate, payload, id=UUID(int=dice.getrandbits(128), version=4)
    )
