"""`outboxd.publish_many`: events and jobs by the hundred, in one statement."""

from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import Any, overload
from uuid import UUID

from psycopg import AsyncConnection, Connection

from outboxd.core.errors import PublishRefused
from outboxd.core.events import NewEvent, NewJob
from outboxd.producer.limits import MANY_BYTES, MANY_EVENTS, MAX_BYTES
from outboxd.producer.rows import Row, row_of
from outboxd.producer.sizes import check_size
from outboxd.producer.statements import storing
from outboxd.producer.storing import store


@overload
def publish_many(
    connection: Connection[Any],
    events: Sequence[NewEvent | NewJob],
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> list[UUID]: ...


@overload
def publish_many(
    connection: AsyncConnection[Any],
    events: Sequence[NewEvent | NewJob],
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> Awaitable[list[UUID]]: ...


@overload
def publish_many(
    connection: object,
    events: Sequence[NewEvent | NewJob],
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> Any: ...


def publish_many(
    connection: object,
    events: Sequence[NewEvent | NewJob],
    *,
    schema: str = "outboxd",
    ordered: bool = False,
    traceparent: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> list[UUID] | Awaitable[list[UUID]]:
    """Store events and jobs, in the order given, with one statement; returns their ids in order.

    All of them or, if one is refused, none; otherwise as `publish`. At most `MANY_EVENTS` of them
    and `MANY_BYTES` of messages: give more in parts, in the same transaction.

    With `ordered=True` all their aggregates are locked at once, in an order that two calls cannot
    deadlock in. A transaction that calls several times can.
    """
    rows = _rows(events, traceparent, max_bytes)
    statements = storing(rows, schema, ordered=ordered) if rows else []
    return store(connection, statements, [row.id for row in rows])


def _rows(
    events: Sequence[NewEvent | NewJob], traceparent: str | None, max_bytes: int
) -> list[Row]:
    if len(events) > MANY_EVENTS:
        raise PublishRefused(
            f"{len(events)} events at once are above the limit of {MANY_EVENTS}; call "
            "publish_many() with parts of the list, in the same transaction"
        )
    rows: list[Row] = []
    total = 0
    for position, event in enumerate(events):
        if not isinstance(event, NewEvent | NewJob):
            raise TypeError(f"publish_many() takes events and jobs, and this is {event!r:.300}")
        try:
            row = row_of(event, traceparent)
            total += check_size(row, max_bytes)
        except PublishRefused as error:
            raise PublishRefused(f"event {position} of {len(events)}: {error}") from error
        if total > MANY_BYTES:
            raise PublishRefused(
                f"the first {position + 1} of {len(events)} events take {total} bytes together, "
                f"above the limit of {MANY_BYTES}; call publish_many() with parts of the list, in "
                "the same transaction"
            )
        rows.append(row)
    _check_ids(rows)
    return rows


def _check_ids(rows: Sequence[Row]) -> None:
    """The same event twice is one to every consumer, so one of the two facts would be lost."""
    for event_id, times in Counter(row.id for row in rows).most_common(1):
        if times > 1:
            raise PublishRefused(
                f"{times} of the events have the id {event_id}, and consumers would take them for "
                "one; make a new NewEvent for each"
            )
