"""How rows of the outbox are printed, for people and for programs."""

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec

from outboxd.cli.wording import ago, iso, lasting, line, shortened
from outboxd.core.outbox_standing import (
    FOREVER,
    Behind,
    Dead,
    Discarded,
    Held,
    Next,
    Published,
    Retrying,
    Row,
    Standing,
    Stopped,
    standing,
    state_of,
)


def print_row(row: Row, now: float) -> None:
    """A paragraph: which event, where it stands, and its last error."""
    stands = standing(row, now)
    print(f"{row.seq}  {row.id}  {line(row.event_type)}")
    print(f"    aggregate {line(row.aggregate_type)}/{line(row.aggregate_id)}")
    print(f"    state     {state_of(stands)}: {explained(stands, now, alone=row.alone)}")
    print(f"    inserted  {ago(now - row.occurred_at)}")
    if row.attempts:
        print(f"    attempts  {row.attempts}")
    if row.delivered_to and row.published_at is None:
        print(f"    delivered {', '.join(map(line, row.delivered_to))}, and nowhere else yet")
    if row.last_error and row.published_at is None:
        print(f"    error     {shortened(row.last_error)}")


def explained(stands: Standing, now: float, *, alone: bool) -> str:
    """What a state means for this event, and for its aggregate unless the event is `alone`."""
    waits = "" if alone else " and its aggregate waits"
    match stands:
        case Published(at=when):
            return f"{ago(now - when)}"
        case Dead(at=when):
            return f"given up {ago(now - when)}; requeue or discard it"
        case Discarded(at=when):
            return f"{ago(now - when)}"
        case Stopped():
            return f"its attempts are used up{waits}; requeue or discard it"
        case Retrying(at=when):
            return f"tried again in {lasting(when - now)}{waits}"
        case Held():
            return "no route matches it; its aggregate waits"
        case Behind(head=head, trouble=trouble):
            return f"behind event {head} of its aggregate, which {_trouble(trouble, now)}"
        case Next(behind=None):
            return "nothing in the outbox stands in its way"
        case Next(behind=head):
            return f"after event {head} of its aggregate"
        case _:
            assert_never(stands)


def _trouble(trouble: Stopped | Retrying | Held, now: float) -> str:
    match trouble:
        case Stopped():
            return "has stopped; requeue or discard that one"
        case Retrying(at=when):
            return f"failed and is tried again in {lasting(when - now)}"
        case Held():
            return "no route matches"
        case _:
            assert_never(trouble)


def as_json(row: Row, now: float) -> dict[str, Any]:
    """Everything that is known of a row but its payload."""
    stands = standing(row, now)
    due = row.next_attempt_at
    return {
        "seq": row.seq,
        "id": row.id,
        "event_type": row.event_type,
        "aggregate_type": row.aggregate_type,
        "aggregate_id": row.aggregate_id,
        "state": state_of(stands),
        "behind_seq": _behind(stands),
        "occurred_at": iso(row.occurred_at),
        "age_seconds": round(now - row.occurred_at) if abs(row.occurred_at) != FOREVER else None,
        "published_at": iso(row.published_at),
        "attempts": row.attempts,
        "next_attempt_at": "infinity" if due == FOREVER else iso(due),
        "last_error": row.last_error,
        "dead_at": iso(row.dead_at),
        "delivered_to": list(row.delivered_to),
    }


def _behind(stands: Standing) -> int | None:
    match stands:
        case Behind(head=head):
            return head
        case Next(behind=head):
            return head
        case _:
            return None


def print_json(content: object) -> None:
    """One document."""
    print(msgspec.json.encode(content).decode(), flush=True)


def brief(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Which events, for programs."""
    return [{"seq": row.seq, "id": row.id, "event_type": row.event_type} for row in rows]
