import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outboxd.adapters.sqs.entries import MESSAGE_BYTES, sqs_entry
from outboxd.core.errors import PublishRefused
from outboxd.core.events import NewEvent
from outboxd.core.outbox import StoredEvent
from outboxd.ports.destination import Entry
from outboxd.producer import MAX_BYTES, _encoded, publish


class Placed(msgspec.Struct):
    order_id: str
    amount_cents: int


def an_event(payload: Any = None, **changes: Any) -> NewEvent:
    values: dict[str, Any] = {
        "type": "order.placed",
        "aggregate_type": "order",
        "aggregate_id": "o-1",
        "payload": Placed("o-1", 1250) if payload is None else payload,
    }
    return NewEvent(**{**values, **changes})


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database) as connection:
        yield connection


@pytest.fixture
async def async_connection(database: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    connection = await psycopg.AsyncConnection.connect(database)
    yield connection
    await connection.close()


def stored(dsn: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "SELECT id, event_type, aggregate_type, aggregate_id, payload, headers"
            "  FROM outboxd.outbox_events ORDER BY seq"
        ).fetchall()


def test_an_event_is_stored_with_the_change_it_tells_of(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    event = an_event(headers={"traceparent": "00-1"})

    assert publish(connection, event) == event.id
    assert stored(database) == []
    connection.commit()

    assert stored(database) == [
        (
            event.id,
            "order.placed",
            "order",
            "o-1",
            {"order_id": "o-1", "amount_cents": 1250},
            {"traceparent": "00-1"},
        )
    ]


def test_a_rolled_back_change_publishes_nothing(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    publish(connection, an_event())
    connection.rollback()

    assert stored(database) == []


async def test_an_asynchronous_connection_is_awaited(
    database: str, async_connection: psycopg.AsyncConnection[Any]
) -> None:
    event = an_event({"async": True})

    async with async_connection.transaction():
        assert await publish(async_connection, event, ordered=True) == event.id

    assert [row[4] for row in stored(database)] == [{"async": True}]


def test_autocommit_is_refused_outside_of_a_transaction_only(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    connection.autocommit = True

    with pytest.raises(PublishRefused, match=r"with connection\.transaction\(\):"):
        publish(connection, an_event())
    with connection.transaction():
        publish(connection, an_event())

    assert len(stored(database)) == 1


async def test_an_asynchronous_autocommit_connection_is_refused_before_it_is_awaited(
    async_connection: psycopg.AsyncConnection[Any],
) -> None:
    await async_connection.set_autocommit(True)

    with pytest.raises(PublishRefused):
        publish(async_connection, an_event())


def test_another_schema_is_named_safely(database: str, connection: psycopg.Connection[Any]) -> None:
    connection.execute('CREATE SCHEMA "odd ""name"')
    connection.execute('CREATE TABLE "odd ""name".outbox_events (LIKE outboxd.outbox_events)')
    connection.execute('ALTER TABLE "odd ""name".outbox_events ALTER seq DROP NOT NULL')
    connection.execute('ALTER TABLE "odd ""name".outbox_events ALTER occurred_at DROP NOT NULL')
    connection.execute('ALTER TABLE "odd ""name".outbox_events ALTER attempts DROP NOT NULL')

    publish(connection, an_event(), schema='odd "name')

    assert connection.execute('SELECT count(*) FROM "odd ""name".outbox_events').fetchone() == (1,)


def test_ordered_writers_of_one_aggregate_take_turns(database: str) -> None:
    with psycopg.connect(database) as first, psycopg.connect(database) as second:
        publish(first, an_event(1), ordered=True)
        waiter = threading.Thread(target=publish, args=(second, an_event(2)), kwargs=ORDERED)
        waiter.start()
        waiter.join(0.2)
        assert waiter.is_alive()
        publish(first, an_event(3), ordered=True)
        first.commit()
        waiter.join(10)
        second.commit()

    assert [row[4] for row in stored(database)] == [1, 3, 2]


ORDERED = {"ordered": True}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"type": ""}, "type must be"),
        ({"type": "x" * 129}, "type must be"),
        ({"aggregate_type": ""}, "aggregate_type must be"),
        ({"aggregate_id": ""}, "aggregate_id must be"),
        ({"aggregate_id": "x" * 256}, "aggregate_id must be"),
        ({"aggregate_id": "a\0b"}, "aggregate_id holds"),
        ({"aggregate_id": "a\ud800b"}, "aggregate_id holds"),
        ({"type": "order\x1bplaced"}, "type holds"),
        ({"type": "order placed"}, "no white space and no control character: 'order placed'"),
        ({"type": "order.placed\n"}, "type holds"),
        ({"type": "order\u00a0placed"}, "type holds"),
        ({"type": "order\x85placed"}, "type holds"),
        ({"payload": object()}, "payload is not encodable"),
        ({"payload": {"a": {1, object()}}}, "payload is not encodable"),
        ({"payload": "\ud800"}, "payload is not encodable"),
        ({"payload": {"a": ["nul \0"]}}, "NUL"),
        ({"payload": {"nul \0": 1}}, "NUL"),
        ({"payload": msgspec.Raw(b'"\\u0000"')}, "NUL"),
        ({"payload": msgspec.Raw(b'"\\ud800 alone"')}, "surrogate"),
        ({"headers": {"a": "nul \0"}}, "NUL"),
        ({"headers": {"a": 1}}, "headers must be"),
    ],
)
def test_what_can_never_be_published_is_refused(
    connection: psycopg.Connection[Any], changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(PublishRefused, match=complaint):
        publish(connection, an_event(**changes))

    # Nothing was sent, so the transaction of the caller is as good as before.
    assert connection.execute("SELECT count(*) FROM outboxd.outbox_events").fetchone() == (0,)


@pytest.mark.parametrize(
    "payload",
    [
        r"a backslash before \u0000",
        {"a": r"\\u0000"},
        "😀 é \x01",
        msgspec.Raw(b'"\\ud83d\\ude00"'),
        None,
        [1.5, True],
    ],
)
def test_what_only_looks_dangerous_is_stored(
    database: str, connection: psycopg.Connection[Any], payload: Any
) -> None:
    publish(connection, an_event(payload))
    connection.commit()

    (row,) = stored(database)
    assert row[4] == json.loads(msgspec.json.encode(payload)) or payload is None


def test_an_event_that_no_message_can_hold_is_refused(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    with pytest.raises(PublishRefused, match=f"at most {MAX_BYTES}"):
        publish(connection, an_event("x" * MAX_BYTES))
    # jsonb spreads it: 700,000 bytes here are more than a million there.
    with pytest.raises(PublishRefused):
        publish(connection, an_event([0] * 350_000))

    publish(connection, an_event("x, " * 349_000))
    connection.commit()
    assert len(stored(database)) == 1


@settings(max_examples=20, deadline=None)  # each is a megabyte
@given(
    st.integers(0, 400),
    st.sampled_from(["x", "é", ", ", '"', "\n"]),
    st.text(st.characters(min_codepoint=32, codec="utf-8"), min_size=1, max_size=255),
)
def test_what_is_accepted_fits_into_a_message(margin: int, filling: str, name: str) -> None:
    width = len(msgspec.json.encode(filling)) - 2
    payload = [filling * ((MAX_BYTES - 3000 - margin) // width), 1, {"a": 2}]
    event = an_event(payload, aggregate_id=name.replace("\x7f", ""), headers={"traceparent": "0"})
    try:
        _encoded(event)
    except PublishRefused:
        return
    as_stored = json.dumps(payload, ensure_ascii=False)  # as PostgreSQL writes it
    row = StoredEvent(
        key=1,
        seq=1,
        id=str(event.id),
        event_type=event.type,
        aggregate_type=event.aggregate_type,
        aggregate_id=event.aggregate_id,
        payload=as_stored,
        traceparent="0",
        occurred_at="2026-01-01T00:00:00.000000Z",
        born_at=0.0,
        attempts=0,
        due_at=0.0,
        delivered_to=None,
    )
    entry = sqs_entry(row, "event", fifo=False)
    assert isinstance(entry, Entry)
    assert entry.size <= MESSAGE_BYTES


async def test_publishing_works_on_a_connection_in_use_by_a_framework(
    database: str, async_connection: psycopg.AsyncConnection[Any]
) -> None:
    """SQLAlchemy and Django open the transaction themselves and hand out their raw connection."""
    await async_connection.set_autocommit(True)
    await async_connection.execute("BEGIN")

    await asyncio.wait_for(publish(async_connection, an_event()), 10)
    await async_connection.execute("COMMIT")

    assert len(stored(database)) == 1
