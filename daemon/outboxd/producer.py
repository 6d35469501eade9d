"""Stores events in the outbox, inside the transaction of whoever calls."""

import json
import re
from collections.abc import Awaitable, Mapping
from typing import Any, overload
from uuid import UUID

import msgspec
from psycopg import AsyncConnection, Connection, sql

from outboxd.core.errors import PublishRefused
from outboxd.core.events import NewEvent
from outboxd.core.outgoing import ILLEGAL, utf8_bytes
from outboxd.raw_connections import (
    AnyConnection,
    commits_by_itself,
    is_asynchronous,
    raw_async_connection,
    raw_connection,
)

MAX_BYTES = 1_048_576
"""The most that SQS takes in one message, attributes included."""

ENVELOPE_BYTES = 512
"""More than the keys of an envelope, its id, its time and the names of its attributes take."""

TYPE_CHARACTERS = 128
AGGREGATE_CHARACTERS = 255

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s || chr(31) || %s, 0))"

INSERT = """
    INSERT INTO {table} (id, event_type, aggregate_type, aggregate_id, payload, headers)
    VALUES (%s, %s, %s, %s, %s::jsonb, %s::jsonb)
"""

_BLANK_OR_CONTROL = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_SURROGATE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")


@overload
def publish(
    connection: Connection[Any],
    event: NewEvent,
    *,
    schema: str = ...,
    ordered: bool = ...,
) -> UUID: ...


@overload
def publish(
    connection: AsyncConnection[Any],
    event: NewEvent,
    *,
    schema: str = ...,
    ordered: bool = ...,
) -> Awaitable[UUID]: ...


@overload
def publish(
    connection: object,
    event: NewEvent,
    *,
    schema: str = ...,
    ordered: bool = ...,
) -> Any: ...


def publish(
    connection: object,
    event: NewEvent,
    *,
    schema: str = "outboxd",
    ordered: bool = False,
) -> UUID | Awaitable[UUID]:
    """Store the event in the outbox, in the transaction of `connection`; returns its id.

    It is published if and only if that transaction commits. `connection` is a psycopg connection,
    an SQLAlchemy Connection or Session over psycopg, or Django's connection. With an asynchronous
    one, await the result.

    Events of one aggregate are published in the order in which they were inserted, provided that
    their writers take turns: by a lock on the aggregate's row, by an optimistic version checked
    before, or by `ordered=True`, which makes them wait for each other here until commit.

    Raises PublishRefused, with nothing written, when the event can never be published or the
    connection would commit it by itself.
    """
    row = (event.id, event.type, event.aggregate_type, event.aggregate_id, *_encoded(event))
    insert = sql.SQL(INSERT).format(table=sql.Identifier(schema, "outbox_events"))
    key = (event.aggregate_type, event.aggregate_id) if ordered else None
    if isinstance(connection, AsyncConnection):
        _check_transaction(connection)  # now, not when it is awaited
    if is_asynchronous(connection):
        return _publish_async(connection, insert, row, key)
    raw = raw_connection(connection)
    _check_transaction(raw)
    if key is not None:
        raw.execute(LOCK, key)
    raw.execute(insert, row)
    return event.id


async def _publish_async(
    connection: object,
    insert: sql.Composed,
    row: tuple[UUID, str, str, str, str, str],
    key: tuple[str, str] | None,
) -> UUID:
    raw = await raw_async_connection(connection)
    _check_transaction(raw)
    if key is not None:
        await raw.execute(LOCK, key)
    await raw.execute(insert, row)
    return row[0]


def _check_transaction(connection: AnyConnection) -> None:
    if commits_by_itself(connection):
        raise PublishRefused(
            "the connection is in autocommit mode and no transaction is open, so the event would "
            "be published even if the change it tells of is not stored; call publish() inside "
            "`with connection.transaction():` (Django: `transaction.atomic()`), together with that "
            "change"
        )


def _encoded(event: NewEvent) -> tuple[str, str]:
    """Payload and headers as JSON that PostgreSQL stores and SQS takes."""
    check_event_type(event.type)
    _check_name("aggregate_type", event.aggregate_type, AGGREGATE_CHARACTERS)
    _check_name("aggregate_id", event.aggregate_id, AGGREGATE_CHARACTERS)
    payload = _json("payload", event.payload)
    headers = _headers(event.headers)
    names = (event.type, event.aggregate_type, event.aggregate_id)
    attributes = (event.type, event.aggregate_id, event.headers.get("traceparent", ""))
    size = (
        _stored_size(payload)
        + len(msgspec.json.encode(names))
        + sum(map(utf8_bytes, attributes))
        + ENVELOPE_BYTES
    )
    if size > MAX_BYTES:
        raise PublishRefused(
            f"the event {event.type!r} of {event.aggregate_type} {event.aggregate_id} would take "
            f"{size} bytes as a message, and a message has at most {MAX_BYTES}; store the payload "
            "elsewhere and publish a reference to it"
        )
    return payload.decode(), headers.decode()


def check_event_type(value: str) -> None:
    """Raises PublishRefused, with what is allowed, for a text that cannot be an event's type.

    Routes and handlers match types by globs, in which a blank that nobody sees matches nothing.
    """
    _check_name("type", value, TYPE_CHARACTERS)
    if (found := _BLANK_OR_CONTROL.search(value)) is not None:
        raise PublishRefused(
            f"type holds {found.group()!r}, and may hold no white space and no control character: "
            f"{value!r}"
        )


def _check_name(field: str, value: str, most: int) -> None:
    if not 1 <= len(value) <= most:
        raise PublishRefused(
            f"{field} must be a text of 1 to {most} characters, and is {value!r:.300}"
        )
    if (illegal := ILLEGAL.search(value)) is not None:
        raise PublishRefused(
            f"{field} holds {illegal.group()!r}, which messages cannot carry: {value!r}"
        )


def _json(field: str, value: Any) -> bytes:
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise PublishRefused(f"{field} is not encodable as JSON: {error}") from error
    if _NUL.search(encoded):
        raise PublishRefused(
            f"{field} holds a NUL character, which PostgreSQL's jsonb cannot store"
        )
    if _SURROGATE.search(encoded):  # only a payload of raw JSON can have one
        _check_raw(field, encoded)
    return encoded


def _check_raw(field: str, encoded: bytes) -> None:
    try:
        msgspec.json.decode(encoded)
    except msgspec.DecodeError as error:
        raise PublishRefused(f"{field} holds half of a surrogate pair: {error}") from error


def _headers(headers: Mapping[str, str]) -> bytes:
    if not all(isinstance(part, str) for pair in headers.items() for part in pair):
        raise PublishRefused(f"headers must be texts by name, and are {headers!r:.300}")
    return _json("headers", headers)


def _stored_size(payload: bytes) -> int:
    """The length of what PostgreSQL gives back: jsonb writes a blank after each colon and comma.

    Counting those in texts too is only an upper bound, so a payload near the limit is looked at.
    """
    size = len(payload) + payload.count(b":") + payload.count(b",")
    if size <= MAX_BYTES - 4 * ENVELOPE_BYTES:
        return size
    return len(json.dumps(json.loads(payload), ensure_ascii=False).encode())
