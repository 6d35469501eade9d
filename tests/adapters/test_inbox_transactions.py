"""Inbox transactions on a real PostgreSQL: an effect and its mark, or neither."""

import threading
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import anyio
import psycopg
import pytest
from anyio import to_thread

from outboxd import DeadLetter, Done, Event, Reject, Retry, RetryLater
from outboxd.adapters.handlers import Runner
from outboxd.core.judging import Away, Busy, Ending, Returned
from tests.adapters.handling_scene import (
    DONE,
    DUPLICATE,
    WRITE,
    AsyncTx,
    Scene,
    Tx,
    a_call,
    a_scene,
    loaded,
)


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    async with a_scene(database) as scene:
        yield scene


def writes(event: Event[Any], tx: Tx) -> None:
    tx.execute(WRITE, (event.id, "written"))


async def writes_async(event: Event[Any], tx: AsyncTx) -> None:
    await tx.execute(WRITE, (event.id, "written"))


BOTH_WRITE = pytest.mark.parametrize("handler", [writes, writes_async])


@BOTH_WRITE
async def test_an_effect_and_its_mark_are_committed_together(scene: Scene, handler: Any) -> None:
    assert await scene.run(handler) == DONE
    assert (scene.ledger, scene.marks) == (["written"], 1)


@BOTH_WRITE
async def test_a_repeated_event_does_not_run_its_handler(scene: Scene, handler: Any) -> None:
    event_id = uuid4()
    assert await scene.run(handler, event_id) == DONE
    assert await scene.run(handler, event_id) == DUPLICATE
    assert scene.ledger == ["written"]


@BOTH_WRITE
async def test_concurrent_copies_of_an_event_take_effect_once(scene: Scene, handler: Any) -> None:
    event_id = uuid4()
    endings: list[Ending] = []

    async def copy() -> None:
        endings.append(await scene.run(handler, event_id))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(copy)
    assert endings.count(DONE) == 1
    assert endings.count(DUPLICATE) == 7
    assert scene.ledger == ["written"]


async def test_a_copy_waits_for_the_one_in_other_hands_and_then_gives_way(scene: Scene) -> None:
    event_id = uuid4()
    started, let_go = threading.Event(), threading.Event()

    def slow(event: Event[Any], tx: Tx) -> None:
        writes(event, tx)
        started.set()
        let_go.wait(20)

    endings: list[Ending] = []

    async def first() -> None:
        endings.append(await scene.run(slow, event_id))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await to_thread.run_sync(started.wait)
        assert await scene.run(writes_async, event_id) == Busy()
        assert await scene.run(writes, event_id) == Busy()
        let_go.set()
    assert endings == [DONE]
    assert scene.ledger == ["written"]


async def test_the_same_event_is_handled_by_every_handler(scene: Scene) -> None:
    event_id = uuid4()
    for name in ("one", "two"):
        handler = loaded(writes, name)
        runner = Runner([handler], concurrency=1, database=scene.database)
        assert await runner.run(name, a_call(event_id)) == DONE
    assert scene.ledger == ["written", "written"]


async def test_the_handlers_own_lock_waits_are_not_bounded(scene: Scene) -> None:
    seen: list[str] = []

    def looks(event: Event[Any], tx: Tx) -> None:
        row = tx.execute("SHOW lock_timeout").fetchone()
        assert row is not None
        seen.append(row[0])

    assert await scene.run(looks) == DONE
    assert seen == ["0"]


def raises(event: Event[Any], tx: Tx) -> None:
    writes(event, tx)
    raise ValueError("no")


async def raises_async(event: Event[Any], tx: AsyncTx) -> None:
    await writes_async(event, tx)
    raise ValueError("no")


def retries(event: Event[Any], tx: Tx) -> Retry:
    writes(event, tx)
    return Retry(5)


async def retries_async(event: Event[Any], tx: AsyncTx) -> Retry:
    await writes_async(event, tx)
    raise RetryLater("wait", after_seconds=5)


def buries(event: Event[Any], tx: Tx) -> DeadLetter:
    writes(event, tx)
    return DeadLetter(error="no")


async def rejects_async(event: Event[Any], tx: AsyncTx) -> None:
    await writes_async(event, tx)
    raise Reject("no")


def returns_a_word(event: Event[Any], tx: Tx) -> str:
    writes(event, tx)
    return "done"


def exits(event: Event[Any], tx: Tx) -> None:
    writes(event, tx)
    raise SystemExit(0)


def swallows_an_error(event: Event[Any], tx: Tx) -> None:
    writes(event, tx)
    try:
        tx.execute("SELECT 1 / 0")
    except psycopg.Error:
        return


async def swallows_an_error_async(event: Event[Any], tx: AsyncTx) -> None:
    await writes_async(event, tx)
    try:
        await tx.execute("SELECT 1 / 0")
    except psycopg.Error:
        return


def commits(event: Event[Any], tx: Tx) -> None:
    writes(event, tx)
    tx.commit()


async def rolls_back_async(event: Event[Any], tx: AsyncTx) -> None:
    await writes_async(event, tx)
    await tx.rollback()


def closes(event: Event[Any], tx: Tx) -> None:
    writes(event, tx)
    tx.close()


def leaves_its_block(event: Event[Any], tx: Tx) -> None:
    with tx:
        writes(event, tx)


def rolls_back_in_sql(event: Event[Any], tx: Tx) -> None:
    writes(event, tx)
    tx.execute("ROLLBACK")


def rolls_back_and_begins_in_sql(event: Event[Any], tx: Tx) -> None:
    tx.execute("ROLLBACK")
    tx.execute("BEGIN")
    writes(event, tx)


def violates_a_deferred_constraint(event: Event[Any], tx: Tx) -> None:
    tx.execute("CREATE TABLE parent (id int PRIMARY KEY)")
    tx.execute("CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
    tx.execute("INSERT INTO child VALUES (1)")
    writes(event, tx)


@pytest.mark.parametrize(
    "handler",
    [
        raises,
        raises_async,
        retries,
        retries_async,
        buries,
        rejects_async,
        returns_a_word,
        exits,
        swallows_an_error,
        swallows_an_error_async,
        commits,
        rolls_back_async,
        closes,
        leaves_its_block,
        rolls_back_in_sql,
        rolls_back_and_begins_in_sql,
        violates_a_deferred_constraint,
    ],
)
async def test_what_is_not_success_leaves_no_trace_and_can_run_again(
    scene: Scene, handler: Any
) -> None:
    event_id = uuid4()
    ending = await scene.run(handler, event_id)
    assert not (isinstance(ending, Returned) and isinstance(ending.outcome, Done))
    assert not isinstance(ending, Away | Busy), "the handler is to blame"
    assert (scene.ledger, scene.marks) == ([], 0)
    assert await scene.run(writes, event_id) == DONE
    assert scene.ledger == ["written"]


def commits_in_sql(event: Event[Any], tx: Tx) -> None:
    writes(event, tx)
    tx.execute("COMMIT")


def commits_and_begins_in_sql(event: Event[Any], tx: Tx) -> None:
    commits_in_sql(event, tx)
    tx.execute("BEGIN")
    tx.execute(WRITE, (event.id, "second half"))


def commits_in_sql_and_fails(event: Event[Any], tx: Tx) -> None:
    commits_in_sql(event, tx)
    raise ValueError("no")


def commits_begins_and_fails(event: Event[Any], tx: Tx) -> None:
    commits_and_begins_in_sql(event, tx)
    tx.execute("SELECT 1 / 0")


async def commits_in_sql_async(event: Event[Any], tx: AsyncTx) -> None:
    await writes_async(event, tx)
    await tx.execute("COMMIT")


@pytest.mark.parametrize(
    "handler",
    [
        commits_in_sql,
        commits_and_begins_in_sql,
        commits_in_sql_and_fails,
        commits_begins_and_fails,
        commits_in_sql_async,
    ],
)
async def test_a_handler_that_commits_by_itself_is_dead_lettered_not_taken_for_done(
    scene: Scene, handler: Any
) -> None:
    """Its mark is committed, so another delivery would look like a repeat."""
    ending = await scene.run(handler)
    assert isinstance(ending, Returned)
    assert isinstance(ending.outcome, DeadLetter)
    assert "ended its transaction itself" in ending.outcome.error
    assert scene.ledger == ["written"]
