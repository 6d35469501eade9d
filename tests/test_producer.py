"""Publishing in a psycopg transaction: with it, or not at all."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from outboxd import NewEvent, NewJob, PublishRefused, enqueue, publish
from tests.producer_scene import an_event, payloads, rows, stored


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database) as connection:
        yield connection


@pytest.fixture
async def async_connection(database: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    connection = await psycopg.AsyncConnection.connect(database)
    yield connection
    await connection.close()


def test_an_event_is_stored_with_the_change_it_tells_of(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    event = an_event(headers={"tenant": "7"})

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
            {"tenant": "7"},
        )
    ]


def test_a_rolled_back_change_publishes_nothing(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    publish(connection, an_event())
    connection.rollback()

    assert stored(database) == []


def test_a_savepoint_takes_its_events_with_it(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    publish(connection, an_event("before"))
    with connection.transaction(force_rollback=True):
        publish(connection, an_event("within"))
    publish(connection, an_event("after"))
    connection.commit()

    assert payloads(database) == ["before", "after"]


async def test_an_asynchronous_connection_is_awaited(
    database: str, async_connection: psycopg.AsyncConnection[Any]
) -> None:
    event = an_event({"async": True})

    async with async_connection.transaction():
        assert await publish(async_connection, event, ordered=True) == event.id

    assert payloads(database) == [{"async": True}]


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


async def test_a_transaction_that_was_begun_by_hand_counts(
    database: str, async_connection: psycopg.AsyncConnection[Any]
) -> None:
    await async_connection.set_autocommit(True)
    await async_connection.execute("BEGIN")

    await asyncio.wait_for(publish(async_connection, an_event()), 10)
    await async_connection.execute("COMMIT")

    assert len(stored(database)) == 1


def test_an_event_may_be_one_of_a_pipeline(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    connection.autocommit = True
    with connection.pipeline(), connection.transaction():
        publish(connection, an_event(1))
        publish(connection, an_event(2))

    assert payloads(database) == [1, 2]


@pytest.mark.parametrize("factory", [psycopg.RawCursor, psycopg.ClientCursor])
def test_the_connections_own_kind_of_cursor_does_not_matter(
    database: str, connection: psycopg.Connection[Any], factory: type[psycopg.Cursor[Any]]
) -> None:
    connection.cursor_factory = factory
    publish(connection, an_event("100 % $1"), ordered=True)
    connection.commit()

    assert payloads(database) == ["100 % $1"]


def test_another_schema_is_named_safely(connection: psycopg.Connection[Any]) -> None:
    connection.execute('CREATE SCHEMA "odd ""name"')
    connection.execute('CREATE TABLE "odd ""name".outbox_events (LIKE outboxd.outbox_events)')
    for column in ("seq", "occurred_at", "attempts"):
        connection.execute(
            f'ALTER TABLE "odd ""name".outbox_events ALTER {column} DROP NOT NULL'.encode()
        )

    publish(connection, an_event(), schema='odd "name')

    assert connection.execute('SELECT count(*) FROM "odd ""name".outbox_events').fetchone() == (1,)


def test_a_job_is_an_event_of_an_aggregate_of_its_own(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    job = NewJob("mail.send", {"to": "ada"})
    keyed = NewJob("mail.send", {"to": "bob"}, key="customer-7", headers={"tenant": "7"})

    assert enqueue(connection, job) == job.id
    assert enqueue(connection, keyed, ordered=True) == keyed.id
    connection.commit()

    assert stored(database) == [
        (job.id, "mail.send", "job", str(job.id), {"to": "ada"}, {}),
        (keyed.id, "mail.send", "job", "customer-7", {"to": "bob"}, {"tenant": "7"}),
    ]


async def test_a_job_is_stored_asynchronously(
    database: str, async_connection: psycopg.AsyncConnection[Any]
) -> None:
    async with async_connection.transaction():
        await enqueue(async_connection, NewJob("mail.send", 1))

    assert payloads(database) == [1]


def test_jobs_without_a_key_are_spread_over_the_buckets(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    for number in range(20):
        enqueue(connection, NewJob("mail.send", number))
    connection.commit()

    [(buckets,)] = rows(
        database,
        "SELECT count(DISTINCT hashtextextended(aggregate_type || chr(31) || aggregate_id, 0) & 63)"
        "  FROM outboxd.outbox_events",
    )
    assert buckets > 5


def test_what_is_neither_is_told_apart(connection: psycopg.Connection[Any]) -> None:
    job: Any = NewJob("mail.send", 1)
    event: Any = NewEvent("order.placed", "order", "1", 1)

    with pytest.raises(TypeError, match=r"publish\(\) takes a NewEvent, and this is NewJob"):
        publish(connection, job)
    with pytest.raises(TypeError, match=r"enqueue\(\) takes a NewJob, and this is NewEvent"):
        enqueue(connection, event)
    with pytest.raises(TypeError, match=r"expected a psycopg connection.*this is a builtins\.str"):
        publish("postgresql://", event)
