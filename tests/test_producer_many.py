"""Many events at once: in order, all or none, bounded."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from outboxd import NewEvent, NewJob, PublishRefused, publish_many
from outboxd.producer import MANY_EVENTS
from tests.producer_scene import an_event, payloads, stored


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database) as connection:
        yield connection


@pytest.fixture
async def async_connection(database: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    connection = await psycopg.AsyncConnection.connect(database)
    yield connection
    await connection.close()


def numbered(count: int, **changes: Any) -> list[NewEvent]:
    return [an_event([number], **changes) for number in range(count)]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("count", [1, 2, MANY_EVENTS])
def test_ids_and_rows_have_the_order_given(
    database: str, connection: psycopg.Connection[Any], count: int, ordered: bool
) -> None:
    events = numbered(count)

    assert publish_many(connection, events, ordered=ordered) == [event.id for event in events]
    connection.commit()

    assert [(row[0], row[4]) for row in stored(database)] == [
        (event.id, event.payload) for event in events
    ]


async def test_an_asynchronous_connection_is_awaited(
    database: str, async_connection: psycopg.AsyncConnection[Any]
) -> None:
    events = numbered(3)

    async with async_connection.transaction():
        assert await publish_many(async_connection, events) == [event.id for event in events]
        assert await publish_many(async_connection, []) == []

    assert payloads(database) == [[0], [1], [2]]


def test_it_is_one_statement(connection: psycopg.Connection[Any]) -> None:
    before = statements(connection)
    publish_many(connection, numbered(100))

    assert statements(connection) - before == 1


def statements(connection: psycopg.Connection[Any]) -> int:
    """Of this transaction that inserted: each has a command id of its own."""
    row = connection.execute(
        "SELECT count(DISTINCT cmin::text) FROM outboxd.outbox_events"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_texts_that_arrays_would_have_to_quote_are_stored_as_they_are(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    odd = ['{"a"}', "NULL", "back\\slash", "comma, {brace}", "", 'quote"', "%s", "new\nline"]
    publish_many(
        connection, [an_event(text, aggregate_id=text or "-", headers={"h": text}) for text in odd]
    )
    connection.commit()

    assert [(row[3], row[4], row[5]) for row in stored(database)] == [
        (text or "-", text, {"h": text}) for text in odd
    ]


def test_events_and_jobs_may_be_mixed(database: str, connection: psycopg.Connection[Any]) -> None:
    job = NewJob("mail.send", 2)
    publish_many(connection, [an_event(1), job], ordered=True)
    connection.commit()

    assert [(row[2], row[4]) for row in stored(database)] == [("order", 1), ("job", 2)]


def test_none_is_nothing(database: str, connection: psycopg.Connection[Any]) -> None:
    assert publish_many(connection, []) == []
    connection.commit()

    assert stored(database) == []


def test_autocommit_is_refused_outside_of_a_transaction(
    connection: psycopg.Connection[Any],
) -> None:
    connection.autocommit = True

    with pytest.raises(PublishRefused, match="autocommit"):
        publish_many(connection, numbered(2))


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ([an_event(1), an_event(2, type="")], "event 1 of 2: type must be"),
        ([an_event(1), an_event("x" * 1_048_576)], "event 1 of 2: the event 'order.placed' of"),
        ([an_event(1)] * 3, "3 of the events have the id .* make a new NewEvent for each"),
        (
            numbered(MANY_EVENTS + 1),
            r"1001 events at once are above the limit of 1000; call publish_many\(\) with parts",
        ),
        (
            [an_event("x" * 1_000_000) for _ in range(18)],
            r"the first 17 of 18 events take \d+ bytes together, above the limit of 16777216",
        ),
    ],
    ids=["invalid", "large", "repeated", "many", "large together"],
)
def test_one_that_is_refused_takes_all_with_it(
    connection: psycopg.Connection[Any], events: list[NewEvent], complaint: str
) -> None:
    with pytest.raises(PublishRefused, match=complaint):
        publish_many(connection, events)

    assert connection.execute("SELECT count(*) FROM outboxd.outbox_events").fetchone() == (0,)


def test_what_is_no_event_is_told(connection: psycopg.Connection[Any]) -> None:
    events: Any = [an_event(1), {"type": "order.placed"}]

    with pytest.raises(TypeError, match=r"takes events and jobs, and this is \{'type'"):
        publish_many(connection, events)
