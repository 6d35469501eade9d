"""Where a row of the outbox stands: published, given up, or what it waits for."""

from typing import TypeAlias, assert_never

import msgspec

from outboxd.core.outbox_filters import State

FOREVER = float("inf")


class Row(msgspec.Struct, frozen=True):
    """One row as it is; times are Unix seconds by the database's clock, and may be infinite.

    The `head` is the first pending event of the same aggregate among those that keep its order:
    this one, or one before it. An event is `alone` when its route has ordering = "none": it waits
    for no other, and no other for it (core.lanes).
    """

    seq: int
    id: str
    event_type: str
    aggregate_type: str
    aggregate_id: str
    occurred_at: float
    published_at: float | None = None
    attempts: int = 0
    next_attempt_at: float | None = None
    last_error: str | None = None
    dead_at: float | None = None
    delivered_to: tuple[str, ...] = ()
    unrouted: bool = False
    head_seq: int | None = None
    head_next_attempt_at: float | None = None
    head_unrouted: bool = False
    alone: bool = False

    @property
    def aggregate(self) -> tuple[str, str]:
        """What the event is about."""
        return self.aggregate_type, self.aggregate_id


class Published(msgspec.Struct, frozen=True):
    """Every destination has it."""

    at: float


class Dead(msgspec.Struct, frozen=True):
    """The relay gave it up; later events of its aggregate go on."""

    at: float


class Discarded(msgspec.Struct, frozen=True):
    """An operator has said that it is never to be published."""

    at: float


class Stopped(msgspec.Struct, frozen=True):
    """It waits for an operator, and its aggregate with it."""


class Retrying(msgspec.Struct, frozen=True):
    """It failed, and is tried again at `at`."""

    at: float


class Held(msgspec.Struct, frozen=True):
    """No route matches it."""


class Behind(msgspec.Struct, frozen=True):
    """The event `head` of its aggregate comes first, and that one has trouble."""

    head: int
    trouble: "Stopped | Retrying | Held"


class Next(msgspec.Struct, frozen=True):
    """Nothing is known to stand in its way but its turn: `behind` is the event of its aggregate
    that comes first, if there is one."""

    behind: int | None = None


Standing: TypeAlias = Published | Dead | Discarded | Stopped | Retrying | Held | Behind | Next


def standing(row: Row, now: float) -> Standing:
    """Where a row stands at the time `now`.

    Discarded is dead with a next attempt in all eternity: the relay gives up with a finite one, so
    no text has to be read to tell the two apart.
    """
    if row.published_at is not None:
        return Published(row.published_at)
    if row.dead_at is not None:
        return Discarded(row.dead_at) if row.next_attempt_at == FOREVER else Dead(row.dead_at)
    if trouble := _trouble(row.next_attempt_at, row.unrouted, now):
        return trouble
    if row.alone or row.head_seq is None or row.head_seq == row.seq:
        return Next()
    if trouble := _trouble(row.head_next_attempt_at, row.head_unrouted, now):
        return Behind(row.head_seq, trouble)
    return Next(behind=row.head_seq)


def _trouble(due: float | None, unrouted: bool, now: float) -> Stopped | Retrying | Held | None:
    if due == FOREVER:
        return Stopped()
    if due is not None and due > now:
        return Retrying(due)
    return Held() if unrouted else None


def state_of(stands: Standing) -> State:
    """The name by which a person asks for it."""
    match stands:
        case Published():
            return State.PUBLISHED
        case Dead():
            return State.DEAD
        case Discarded():
            return State.DISCARDED
        case Stopped():
            return State.STOPPED
        case Retrying():
            return State.FAILING
        case Held():
            return State.HELD
        case Behind():
            return State.BLOCKED
        case Next():
            return State.PENDING
        case _:
            assert_never(stands)


def requeue_refusal(stands: Standing) -> str | None:
    """Why the event cannot be made pending again; None if it can."""
    match stands:
        case Dead() | Discarded() | Stopped():
            return None
        case Published():
            return "it is published already"
        case Retrying() | Held() | Behind() | Next():
            return "it is pending already; `outboxd outbox show` tells what it waits for"
        case _:
            assert_never(stands)


def discard_refusal(stands: Standing) -> str | None:
    """Why the event cannot be given up for good; None if it can."""
    match stands:
        case Published():
            return "it is published already"
        case Discarded():
            return "it is discarded already"
        case Dead() | Stopped() | Retrying() | Held() | Behind() | Next():
            return None
        case _:
            assert_never(stands)
