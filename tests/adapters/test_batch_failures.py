"""Failing batches on a real PostgreSQL: nothing of them stays, each event can be called alone."""

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import anyio
import psycopg
import pytest

from outboxd import BatchContext, DeadLetter, Event, NewEvent, Reject, Retry, RetryLater
from outboxd.adapters.handlers import Runner
from outboxd.adapters.postgres.consumer_database import consumer_database
from outboxd.core.judging import Away, Raised, Returned
from outboxd.core.outcomes import DeadReason
from outboxd.core.settings import DatabaseSettings
from outboxd.ports.handling import BatchDone, BatchFailed
from tests.adapters.handling_scene import (
    DONE,
    DUPLICATE,
    WRITE,
    AsyncTx,
    Scene,
    Tx,
    a_call,
    a_message,
    a_scene,
    loaded,
)

Events = list[Event[Any]]


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    async with a_scene(database) as scene:
        yield scene


def ids(count: int) -> list[UUID]:
    return [uuid4() for _ in range(count)]


def writes(events: Events, tx: Tx) -> None:
    with tx.cursor() as cursor:
        cursor.executemany(WRITE, [(event.id, "written") for event in events])


async def writes_async(events: Sequence[Event[Any]], tx: AsyncTx) -> None:
    async with tx.cursor() as cursor:
        await cursor.executemany(WRITE, [(event.id, "written") for event in events])


BOTH_WRITE = pytest.mark.parametrize("handler", [writes, writes_async])


def raises(events: Events, tx: Tx) -> None:
    writes(events, tx)
    raise ValueError("odd")


async def raises_async(events: Events, tx: AsyncTx) -> None:
    await writes_async(events, tx)
    raise ValueError("odd")


def rejects(events: Events, tx: Tx) -> None:
    writes(events, tx)
    raise Reject("no")


def asks_for_time(events: Events, tx: Tx) -> None:
    writes(events, tx)
    raise RetryLater("wait", after_seconds=5)


def returns_retry(events: Events, tx: Tx) -> Retry:
    writes(events, tx)
    return Retry(5)


async def returns_a_letter(events: Events, tx: AsyncTx) -> DeadLetter:
    await writes_async(events, tx)
    return DeadLetter(error="never")


def returns_a_word(events: Events, tx: Tx) -> str:
    writes(events, tx)
    return "done"


def exits(events: Events, tx: Tx) -> None:
    writes(events, tx)
    raise SystemExit(0)


def swallows_an_error(events: Events, tx: Tx) -> None:
    writes(events, tx)
    try:
        tx.execute("SELECT 1 / 0")
    except psycopg.Error:
        return


async def sleeps(events: Events, tx: AsyncTx) -> None:
    await writes_async(events, tx)
    await anyio.sleep(60)


async def forgets_to_publish(events: Events, tx: AsyncTx, context: BatchContext) -> None:
    await writes_async(events, tx)
    context.publish(NEW)


def rolls_back_in_sql(events: Events, tx: Tx) -> None:
    writes(events, tx)
    tx.execute("ROLLBACK")


def rolls_back_and_begins_in_sql(events: Events, tx: Tx) -> None:
    tx.execute("ROLLBACK")
    tx.execute("BEGIN")
    writes(events, tx)


NEW = NewEvent(type="order.paid", aggregate_type="order", aggregate_id="17", payload={"a": 1})


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        (raises, "ValueError: odd"),
        (raises_async, "ValueError: odd"),
        (rejects, "Reject: no"),
        (asks_for_time, "RetryLater: wait"),
        (returns_retry, "the handler asked to be called again"),
        (returns_a_letter, "never"),
        (returns_a_word, "returned 'str'"),
        (exits, "SystemExit: 0"),
        (swallows_an_error, "caught a database error and went on"),
        (sleeps, "timed out after 0.3 s"),
        (forgets_to_publish, "did not await context.publish()"),
        (rolls_back_in_sql, "ended its transaction itself"),
        (rolls_back_and_begins_in_sql, "ended its transaction itself"),
    ],
)
async def test_what_is_not_success_leaves_no_trace_of_any_event(
    scene: Scene, handler: Any, error: str
) -> None:
    event_ids = ids(3)

    ending = await scene.run_batch(handler, event_ids, timeout_seconds=0.3)

    assert isinstance(ending, BatchFailed)
    assert error in ending.error
    assert (scene.ledger, scene.marks) == ([], 0)
    assert await scene.run_batch(writes, event_ids) == BatchDone()


@BOTH_WRITE
async def test_each_event_of_a_failed_batch_can_be_called_alone(scene: Scene, handler: Any) -> None:
    event_id = uuid4()
    assert await scene.run(handler, event_id, batch=100) == DONE
    assert await scene.run(handler, event_id, batch=100) == DUPLICATE
    assert scene.effects == [event_id]
    ending = await scene.run(raises, batch=100)
    assert ending == Raised("ValueError: odd")


async def test_a_single_event_of_a_batch_handler_is_judged_like_any_other(scene: Scene) -> None:
    rejected = Returned(DeadLetter(DeadReason.REJECTED, "Reject: no"))
    assert await scene.run(rejects, batch=2) == rejected
    assert isinstance(await scene.run(returns_retry, batch=2), Returned)


def commits_in_sql(events: Events, tx: Tx) -> None:
    writes(events, tx)
    tx.execute("COMMIT")


def commits_begins_and_fails(events: Events, tx: Tx) -> None:
    commits_in_sql(events, tx)
    tx.execute("BEGIN")
    tx.execute("SELECT 1 / 0")


async def commits_in_sql_and_fails_async(events: Events, tx: AsyncTx) -> None:
    await writes_async(events, tx)
    await tx.execute("COMMIT")
    raise ValueError("odd")


@pytest.mark.parametrize(
    "handler", [commits_in_sql, commits_begins_and_fails, commits_in_sql_and_fails_async]
)
async def test_events_of_a_batch_that_committed_by_itself_and_failed_are_dead_lettered(
    scene: Scene, handler: Any
) -> None:
    """Their marks are committed, so calling each alone would take them for repeats; and what was
    done before that batch is a repeat."""
    done_before, *event_ids = ids(3)
    assert await scene.run_batch(writes, [done_before]) == BatchDone()
    runner = scene.runner(handler, batch=100)

    ending = await runner.run_batch("h", [a_call(each) for each in [done_before, *event_ids]])

    assert isinstance(ending, BatchFailed)
    inbox = scene.database.inbox
    for event_id in event_ids:
        assert await inbox.standings(event_id, a_message(), ["h"]) == {}, "it is to be called"
        alone = await runner.run("h", a_call(event_id))
        assert isinstance(alone, Returned)
        assert isinstance(alone.outcome, DeadLetter)
        assert alone.outcome.reason is DeadReason.REJECTED
        assert "ended its transaction itself" in alone.outcome.error
        assert await runner.run("h", a_call(event_id)) == DUPLICATE, "after a redrive"
        assert (await inbox.standings(event_id, a_message(), ["h"]))["h"].done
    assert await runner.run("h", a_call(done_before)) == DUPLICATE
    assert sorted(scene.effects) == sorted([done_before, *event_ids])


def dies(events: Events, tx: Tx) -> None:
    writes(events, tx)
    tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")


async def dies_async(events: Events, tx: AsyncTx) -> None:
    await writes_async(events, tx)
    await tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize("handler", [dies, dies_async])
async def test_a_connection_lost_during_a_batch_is_no_ones_fault(
    scene: Scene, handler: Any
) -> None:
    event_ids = ids(3)
    assert isinstance(await scene.run_batch(handler, event_ids), Away)
    assert await scene.run_batch(writes, event_ids) == BatchDone()


@BOTH_WRITE
async def test_a_database_that_cannot_be_reached_is_an_outage_of_the_batch(handler: Any) -> None:
    settings = DatabaseSettings(url="postgresql://nobody:secret@127.0.0.1:1/none")
    async with consumer_database(settings, "test", "orders") as database:
        runner = Runner([loaded(handler, batch=2)], concurrency=1, database=database)
        ending = await runner.run_batch("h", [a_call(), a_call()])
    assert isinstance(ending, Away)
    assert "secret" not in ending.error
