"""A pool on a real PostgreSQL: when it deletes, and what it does in an outage."""

import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

import anyio
import psycopg
import pytest

from outboxd import Event, Reject
from outboxd.adapters.postgres.consumer_database import ConsumerDatabase, consumer_database
from outboxd.core.settings import DatabaseSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.queue import Refusal
from tests.consumer.fake_queue import FakeQueue
from tests.consumer.scene import a_pool, event_body, eventually, loaded, reason

Tx = psycopg.Connection[Any]
AsyncTx = psycopg.AsyncConnection[Any]

WRITE = "INSERT INTO ledger VALUES (%s, %s)"


@pytest.fixture
async def opened(database: str) -> AsyncIterator[ConsumerDatabase]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE ledger (event_id uuid, note text)")
    async with consumer_database(DatabaseSettings(url=database), "test", "orders") as opened:
        yield opened


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def writes(event: Event[Any], tx: Tx) -> None:
    tx.execute(WRITE, (event.id, "sync"))


async def writes_async(event: Event[Any], tx: AsyncTx) -> None:
    await tx.execute(WRITE, (event.id, "async"))


class Witness(FakeQueue):
    """Looks at every delete whether all handlers' marks are committed."""

    def __init__(self, dsn: str, handlers: int) -> None:
        super().__init__()
        self.dsn = dsn
        self.handlers = handlers
        self.early = 0

    async def delete(self, receipt_handles: Sequence[str]) -> Sequence[Refusal]:
        marked = rows(self.dsn, "SELECT event_id::text FROM outboxd.processed_events")
        for handle in receipt_handles:
            message = self._of(handle)
            assert message is not None
            marks = sum(event_id in message.body for (event_id,) in marked)
            self.early += marks < self.handlers
        return await super().delete(receipt_handles)


async def test_a_message_is_deleted_only_after_every_handler_has_committed(
    database: str, opened: ConsumerDatabase
) -> None:
    queue = Witness(database, handlers=2)
    handlers = [
        loaded(writes, "one", inbox="transaction"),
        loaded(writes_async, "two", inbox="transaction"),
    ]
    async with a_pool(*handlers, queue=queue, database=opened, concurrency=10):
        for _ in range(60):
            queue.send(event_body())
        await eventually(lambda: queue.size == 0)
    assert queue.early == 0
    assert rows(database, "SELECT count(*) FROM ledger") == [(120,)]


async def test_a_handler_that_has_not_committed_keeps_its_message(
    database: str, opened: ConsumerDatabase
) -> None:
    let_go = threading.Event()

    def slow(event: Event[Any], tx: Tx) -> None:
        writes(event, tx)
        let_go.wait(20)

    async with a_pool(loaded(slow, inbox="transaction"), database=opened) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        await anyio.sleep(0.05)
        assert pool.queue.holds("m1")
        assert not rows(database, "SELECT 1 FROM ledger")
        let_go.set()
        await eventually(lambda: pool.queue.size == 0)
    assert len(rows(database, "SELECT 1 FROM ledger")) == 1


async def test_copies_of_an_event_take_effect_once_and_are_all_deleted(
    database: str, opened: ConsumerDatabase
) -> None:
    event_id = uuid4()
    async with a_pool(loaded(writes, inbox="transaction"), database=opened, concurrency=10) as pool:
        for _ in range(30):
            pool.queue.send(event_body(event_id=event_id))
        await eventually(lambda: pool.queue.size == 0)
    assert len(rows(database, "SELECT 1 FROM ledger")) == 1
    assert pool.observed.count(Processed.OK) == 1
    assert pool.observed.count(Processed.DUPLICATE) == 29


async def test_a_redelivered_duplicate_is_deleted_without_running(
    database: str, opened: ConsumerDatabase
) -> None:
    runs: list[int] = []

    def counts(event: Event[Any]) -> None:
        runs.append(1)

    queue = FakeQueue()
    queue.fail("delete", Refusal(0, "ReceiptHandleIsInvalid", "", permanent=True))
    async with a_pool(loaded(counts, inbox="transaction"), queue=queue, database=opened) as pool:
        queue.send(event_body())
        await eventually(lambda: pool.observed.deletes_failed)
        queue.again("m1")
        await eventually(lambda: queue.size == 0)
    assert runs == [1]
    assert pool.observed.count(Processed.DUPLICATE) == 1


async def test_a_failing_handler_does_not_repeat_its_neighbours_effect(
    database: str, opened: ConsumerDatabase
) -> None:
    def fails(event: Event[Any], tx: Tx) -> None:
        writes(event, tx)
        raise ValueError("never")

    handlers = [
        loaded(writes, "good", inbox="transaction"),
        loaded(fails, "bad", inbox="transaction"),
    ]
    async with a_pool(*handlers, database=opened, max_attempts=3) as pool:
        pool.queue.send(event_body())
        for attempt in (1, 2):
            await pool.sees(f"hid m1 for {2**attempt} s")
            pool.queue.again("m1")
        await eventually(lambda: pool.queue.size == 0)
    assert len(rows(database, "SELECT 1 FROM ledger")) == 1
    (letter,) = pool.queue.letters
    (dead,) = reason(letter.attributes)["handlers"]
    assert (dead["name"], dead["attempts"]) == ("bad", 3)
    assert rows(database, "SELECT handler, attempts, last_error FROM outboxd.handler_failures") == [
        ("bad", 3, "max_attempts: ValueError: never")
    ]


async def test_the_letter_of_a_later_delivery_still_knows_the_reason(
    database: str, opened: ConsumerDatabase
) -> None:
    """One handler is dead, the other pending: the letter is written deliveries later."""

    def rejects(event: Event[Any]) -> None:
        raise Reject("no such customer")

    def fails(event: Event[Any]) -> None:
        raise ValueError("never")

    handlers = [
        loaded(rejects, "one", inbox="transaction"),
        loaded(fails, "two", inbox="transaction"),
    ]
    async with a_pool(*handlers, database=opened, max_attempts=2) as pool:
        pool.queue.send(event_body())
        await pool.sees("hid m1 for 2 s")
        pool.queue.again("m1")
        await eventually(lambda: pool.queue.size == 0)
    (letter,) = pool.queue.letters
    told = reason(letter.attributes)["handlers"]
    assert [(h["name"], h["reason"], h["attempts"]) for h in told] == [
        ("one", "rejected", 1),
        ("two", "max_attempts", 2),
    ]
    assert told[0]["error"] == "Reject: no such customer"


async def test_a_server_that_hangs_up_on_everybody_costs_no_attempt(
    database: str, opened: ConsumerDatabase
) -> None:
    """Every connection dies again and again while events are handled; each takes effect once."""
    dead = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
    dead += "current_database() AND pid <> pg_backend_pid()"

    async def slowly(event: Event[Any], tx: AsyncTx) -> None:
        await writes_async(event, tx)
        await anyio.sleep(0.01)

    async with a_pool(
        loaded(slowly, "a", inbox="transaction", event="order.a"),
        loaded(writes, "b", inbox="transaction", event="order.b"),
        database=opened,
        concurrency=8,
        max_attempts=1,
    ) as pool:
        for number in range(100):
            pool.queue.send(event_body("order.a" if number % 2 else "order.b"))
        for _ in range(15):
            await anyio.to_thread.run_sync(rows, database, dead)
            await anyio.sleep(0.02)
            pool.queue.hurry()
        with anyio.fail_after(30):
            while pool.queue.size:
                pool.queue.hurry()
                await anyio.sleep(0.02)
    assert pool.queue.letters == []
    assert rows(database, "SELECT count(*), count(DISTINCT event_id) FROM ledger") == [(100, 100)]
