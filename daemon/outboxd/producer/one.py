"""`outboxd.publish` and `outboxd.enqueue`: one event, one job."""

from collections.abc import Awaitable
from typing import Any, overload
from uuid import UUID

from psycopg import AsyncConnection, Connection

from outboxd.core.events import NewEvent, NewJob
from outboxd.producer.limits import MAX_BYTES
from outboxd.producer.rows import row_of
from outboxd.producer.sizes import check_size
from outboxd.producer.statements import storing
from outboxd.producer.storing import store


@overload
def publish(
    connection: Connection[Any],
    event: NewEvent,
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> UUID: ...


@overload
def publish(
    connection: AsyncConnection[Any],
    event: NewEvent,
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> Awaitable[UUID]: ...


@overload
def publish(
    connection: object,
    event: NewEvent,
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> Any: ...


def publish(
    connection: object,
    event: NewEvent,
    *,
    schema: str = "outboxd",
    ordered: bool = False,
    traceparent: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> UUID | Awaitable[UUID]:
    """Store the event in the outbox, in the transaction of `connection`; returns its id.

    It is published if and only if that transaction commits. `connection` is a psycopg connection,
    an SQLAlchemy Connection or Session over psycopg, or Django's connection. With an asynchronous
    one, await the result.

    Events of one aggregate are published in the order in which they were inserted, provided that
    their writers take turns: by a lock on the aggregate's row, by an optimistic version checked
    before, or by `ordered=True`, which makes them wait for each other here until commit.

    `traceparent` is the trace that it belongs to; without one it is the event's header of that
    name, or else the current OpenTelemetry span. `max_bytes` is the most that the destinations take
    in one message: give 262,144 where SNS or EventBridge are among them.

    Raises PublishRefused, with nothing written, when the event can never be published or the
    connection would commit it by itself.
    """
    if not isinstance(event, NewEvent):
        raise _wrong("publish", "a NewEvent", event)
    return _stored(connection, event, schema, ordered, traceparent, max_bytes)


@overload
def enqueue(
    connection: Connection[Any],
    job: NewJob,
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> UUID: ...


@overload
def enqueue(
    connection: AsyncConnection[Any],
    job: NewJob,
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> Awaitable[UUID]: ...


@overload
def enqueue(
    connection: object,
    job: NewJob,
    *,
    schema: str = ...,
    ordered: bool = ...,
    traceparent: str | None = ...,
    max_bytes: int = ...,
) -> Any: ...


def enqueue(
    connection: object,
    job: NewJob,
    *,
    schema: str = "outboxd",
    ordered: bool = False,
    traceparent: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> UUID | Awaitable[UUID]:
    """Store the job in the outbox, in the transaction of `connection`; returns its id.

    Everything else is as with `publish`. Where a job goes says a route with
    `aggregate_type = "job"`, and with `envelope = "job"` it travels as {"id","type","payload"}.
    `ordered` is for jobs with a key.
    """
    if not isinstance(job, NewJob):
        raise _wrong("enqueue", "a NewJob", job)
    return _stored(connection, job, schema, ordered, traceparent, max_bytes)


def _stored(
    connection: object,
    new: NewEvent | NewJob,
    schema: str,
    ordered: bool,
    traceparent: str | None,
    max_bytes: int,
) -> UUID | Awaitable[UUID]:
    row = row_of(new, traceparent)
    check_size(row, max_bytes)
    return store(connection, storing([row], schema, ordered=ordered), row.id)


def _wrong(function: str, expected: str, given: object) -> TypeError:
    return TypeError(f"{function}() takes {expected}, and this is {given!r:.300}")
