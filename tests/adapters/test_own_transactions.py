"""inbox = "own" over psycopg, SQLAlchemy and Django: one effect, whatever the transaction."""

import threading
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

import anyio
import psycopg
import pytest
from anyio import to_thread

from outboxd import Context, Event, NewEvent, publish
from outboxd.core.judging import Busy, Ending, Raised
from tests.adapters.bringers import (
    ASYNC,
    SYNC,
    of_django,
    of_psycopg,
    of_psycopg_async,
    of_session,
    of_session_async,
    use_django,
)
from tests.adapters.handling_scene import DONE, DUPLICATE, Scene, a_call, a_scene

NEW = NewEvent(type="order.paid", aggregate_type="order", aggregate_id="17", payload={"a": 1})


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    use_django(database)
    async with a_scene(database) as scene:
        yield scene


class Applied:
    """A handler that does its work within a transaction of some library's; `before_commit` may
    fail."""

    def __init__(
        self,
        dsn: str,
        bring: Callable[[str], Any],
        before_commit: Callable[[Any], None] = lambda connection: None,
    ) -> None:
        self.dsn = dsn
        self.bring = bring
        self.before_commit = before_commit

    def __call__(self, event: Event[Any], context: Context) -> None:
        with self.bring(self.dsn) as (connection, write):
            if context.claim(connection):
                write(event.id)
            self.before_commit(connection)


class AppliedAsync(Applied):
    """The same for asynchronous libraries."""

    async def __call__(self, event: Event[Any], context: Context) -> None:  # type: ignore[override]
        async with self.bring(self.dsn) as (connection, write):
            if await context.claim(connection):
                await write(event.id)
            self.before_commit(connection)


HANDLERS = pytest.mark.parametrize(
    ("kind", "bring"),
    [*((Applied, bring) for bring in SYNC), *((AppliedAsync, bring) for bring in ASYNC)],
    ids=lambda value: value.__name__,
)


@HANDLERS
async def test_an_effect_and_its_claim_are_committed_together_and_once(
    scene: Scene, kind: type[Applied], bring: Any
) -> None:
    event_id = uuid4()
    handler = kind(scene.dsn, bring)
    assert await scene.run(handler, event_id, inbox="own") == DONE
    assert (scene.effects, scene.marks) == ([event_id], 1)
    assert await scene.run(handler, event_id, inbox="own") == DUPLICATE
    assert scene.effects == [event_id]


@HANDLERS
async def test_a_failure_before_the_commit_leaves_neither_effect_nor_claim(
    scene: Scene, kind: type[Applied], bring: Any
) -> None:
    def fails(connection: Any) -> None:
        raise ValueError("odd")

    event_id = uuid4()
    ending = await scene.run(kind(scene.dsn, bring, fails), event_id, inbox="own")
    assert ending == Raised("ValueError: odd")
    assert (scene.ledger, scene.marks) == ([], 0)
    assert await scene.run(kind(scene.dsn, bring), event_id, inbox="own") == DONE


@HANDLERS
async def test_concurrent_copies_take_effect_once(
    scene: Scene, kind: type[Applied], bring: Any
) -> None:
    event_id = uuid4()
    runner = scene.runner(kind(scene.dsn, bring), inbox="own")
    endings: list[Ending] = []

    async def copy() -> None:
        endings.append(await runner.run("h", a_call(event_id)))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(copy)

    assert sorted(map(str, endings)) == sorted(map(str, [DONE, *[DUPLICATE] * 3]))
    assert scene.effects == [event_id]


@pytest.mark.parametrize(
    ("kind", "bring"),
    [(Applied, of_session), (Applied, of_django), (AppliedAsync, of_session_async)],
)
async def test_a_copy_in_other_hands_is_nobodys_failure(
    scene: Scene, kind: type[Applied], bring: Any
) -> None:
    """The claim gives up by an exception, which comes out of the handler as its own would."""
    event_id = uuid4()
    started, let_go = threading.Event(), threading.Event()

    def slow(connection: Any) -> None:
        started.set()
        let_go.wait(20)

    async def first() -> None:
        assert await scene.run(Applied(scene.dsn, of_psycopg, slow), event_id, inbox="own") == DONE

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await to_thread.run_sync(started.wait)
        assert await scene.run(kind(scene.dsn, bring), event_id, inbox="own") == Busy()
        let_go.set()
    assert scene.effects == [event_id]


@pytest.mark.parametrize("bring", SYNC)
async def test_an_event_is_published_within_any_transaction(scene: Scene, bring: Any) -> None:
    def publishes(event: Event[Any], context: Context) -> None:
        with bring(scene.dsn) as (connection, write):
            if context.claim(connection):
                write(event.id)
                publish(connection, NEW, ordered=True)

    event_id = uuid4()
    for ending in (DONE, DUPLICATE):
        assert await scene.run(publishes, event_id, inbox="own") == ending
    assert scene.rows("SELECT event_type FROM outboxd.outbox_events") == [("order.paid",)]


@pytest.mark.parametrize("bring", ASYNC)
async def test_an_event_is_published_within_any_asynchronous_transaction(
    scene: Scene, bring: Any
) -> None:
    async def publishes(event: Event[Any], context: Context) -> None:
        async with bring(scene.dsn) as (connection, _):
            await publish(connection, NEW)
            await context.claim(connection)

    assert await scene.run(publishes, inbox="own") == DONE
    assert scene.rows("SELECT event_type FROM outboxd.outbox_events") == [("order.paid",)]


@HANDLERS
async def test_a_claim_alone_is_committed_as_well(
    scene: Scene, kind: type[Applied], bring: Any
) -> None:
    """A transaction that only psycopg knew of would be forgotten by its library's COMMIT."""

    claimed: list[bool] = []

    def only_claims(event: Event[Any], context: Context) -> None:
        with bring(scene.dsn) as (connection, _):
            claimed.append(context.claim(connection))

    async def only_claims_async(event: Event[Any], context: Context) -> None:
        async with bring(scene.dsn) as (connection, _):
            claimed.append(await context.claim(connection))

    handler: Any = only_claims if kind is Applied else only_claims_async
    assert await scene.run(handler, inbox="own") == DONE
    assert (claimed, scene.marks) == ([True], 1)


async def test_the_handlers_own_lock_timeout_is_back_after_a_claim(scene: Scene) -> None:
    seen: list[Any] = []

    def sync(event: Event[Any], context: Context) -> None:
        with psycopg.connect(scene.dsn, options="-c lock_timeout=7s") as connection:
            context.claim(connection)
            seen.append(connection.execute("SHOW lock_timeout").fetchone())
            connection.execute("SET LOCAL lock_timeout = '9s'")
            context.claim(connection)
            seen.append(connection.execute("SHOW lock_timeout").fetchone())
            connection.commit()
            seen.append(connection.execute("SHOW lock_timeout").fetchone())

    async def asynchronous(event: Event[Any], context: Context) -> None:
        async with of_psycopg_async(scene.dsn) as (connection, _):
            await context.claim(connection)
            cursor = await connection.execute("SHOW lock_timeout")
            seen.append(await cursor.fetchone())

    for handler in (sync, asynchronous):
        assert await scene.run(handler, inbox="own") == DONE
    assert [value for (value,) in seen] == ["7s", "9s", "7s", "0"]


async def test_a_second_claim_in_the_same_transaction_gives_the_same_answer(scene: Scene) -> None:
    answers: list[bool] = []

    def claims_twice(event: Event[Any], context: Context) -> None:
        with psycopg.connect(scene.dsn) as connection:
            connection.execute("SELECT 1")
            with connection.transaction():  # a savepoint
                answers.append(context.claim(connection))
            answers.append(context.claim(connection))

    event_id = uuid4()
    assert await scene.run(claims_twice, event_id, inbox="own") == DONE
    assert await scene.run(claims_twice, event_id, inbox="own") == DUPLICATE
    assert answers == [True, True, False, False]


async def test_a_transaction_that_is_tried_again_claims_again(scene: Scene) -> None:
    answers: list[bool] = []

    def tries_twice(event: Event[Any], context: Context) -> None:
        with psycopg.connect(scene.dsn) as connection:
            answers.append(context.claim(connection))
            connection.rollback()
            answers.append(context.claim(connection))

    assert await scene.run(tries_twice, inbox="own") == DONE
    assert answers == [True, True]
