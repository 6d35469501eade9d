"""inbox = "own" when the handler, its transaction or the database goes wrong: the mark judges."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import anyio
import msgspec
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession

from outboxd import Context, DeadLetter, Done, Event, NewEvent, Reject, RetryLater
from outboxd.adapters.handlers import Runner
from outboxd.adapters.postgres.consumer_database import consumer_database
from outboxd.core.errors import OutboxdError
from outboxd.core.judging import Away, Busy, Raised, Returned, TimedOut
from outboxd.core.settings import DatabaseSettings
from outboxd.raw_connections import raw_connection
from tests.adapters.bringers import (
    of_django,
    of_psycopg,
    of_psycopg_async,
    of_session,
    of_session_async,
    of_sqlalchemy,
    use_django,
)
from tests.adapters.handling_scene import DONE, DUPLICATE, Scene, a_call, a_scene, loaded, outlive

NEW = NewEvent(type="order.paid", aggregate_type="order", aggregate_id="17", payload={"a": 1})
TERMINATE = "SELECT pg_terminate_backend(pg_backend_pid())"


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    use_django(database)
    async with a_scene(database) as scene:
        yield scene


async def test_a_failure_after_the_commit_is_a_success_that_is_logged(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    def fails_late(event: Event[Any], context: Context) -> None:
        with of_psycopg(scene.dsn) as (connection, write):
            if context.claim(connection):
                write(event.id)
        raise ValueError("the cache is down")

    event_id = uuid4()
    assert await scene.run(fails_late, event_id, inbox="own") == DONE
    assert scene.effects == [event_id]
    (line,) = [record for record in caplog.records if "marked as done" in record.message]
    assert vars(line)["error"] == "ValueError: the cache is down"
    assert await scene.run(fails_late, event_id, inbox="own") == DUPLICATE


async def test_a_request_for_more_time_after_the_commit_is_a_success(scene: Scene) -> None:
    async def asks_late(event: Event[Any], context: Context) -> None:
        async with of_psycopg_async(scene.dsn) as (connection, _):
            await context.claim(connection)
        raise RetryLater(after_seconds=5)

    assert await scene.run(asks_late, inbox="own") == DONE


async def test_a_rejection_after_the_commit_still_gets_its_person(scene: Scene) -> None:
    def notes_and_rejects(event: Event[Any], context: Context) -> None:
        with of_psycopg(scene.dsn) as (connection, write):
            if context.claim(connection):
                write(event.id)
        raise Reject("the account is closed")

    event_id = uuid4()
    ending = await scene.run(notes_and_rejects, event_id, inbox="own")
    assert isinstance(ending, Returned)
    assert isinstance(ending.outcome, DeadLetter)
    assert await scene.run(notes_and_rejects, event_id, inbox="own") == DUPLICATE
    assert scene.effects == [event_id]


async def test_time_over_before_and_after_the_commit(scene: Scene) -> None:
    async def too_slow(event: Event[Any], context: Context) -> None:
        async with of_session_async(scene.dsn) as (session, _):
            await context.claim(session)
            await anyio.sleep(60)

    async def slow_afterwards(event: Event[Any], context: Context) -> None:
        async with of_session_async(scene.dsn) as (session, _):
            await context.claim(session)
        await anyio.sleep(60)

    assert await scene.run(too_slow, inbox="own", timeout_seconds=0.5) == TimedOut(0.5)
    assert scene.marks == 0
    assert await scene.run(slow_afterwards, inbox="own", timeout_seconds=1.0) == DONE


def never_claims(event: Event[Any], context: Context) -> None:
    return


async def test_a_handler_that_never_claims_has_failed(scene: Scene) -> None:
    event_id = uuid4()
    ending = await scene.run(never_claims, event_id, inbox="own")
    assert isinstance(ending, Raised)
    assert "returned without claiming its event" in ending.error


async def test_a_handler_that_rolls_its_claim_back_has_failed(scene: Scene) -> None:
    def rolls_back(event: Event[Any], context: Context) -> None:
        with of_psycopg(scene.dsn) as (connection, _):
            context.claim(connection)
            connection.rollback()

    ending = await scene.run(rolls_back, inbox="own")
    assert isinstance(ending, Raised)
    assert "without the mark being committed" in ending.error


async def test_what_a_handler_makes_of_a_copy_in_other_hands_does_not_matter(
    scene: Scene,
) -> None:
    def gives_up(event: Event[Any], context: Context) -> None:
        with pytest.raises(OutboxdError, match="elsewhere"), of_session(scene.dsn) as (session, _):
            context.claim(session)

    event_id = uuid4()
    with psycopg.connect(scene.dsn) as other:
        other.execute(
            "INSERT INTO outboxd.processed_events (event_id, handler) VALUES (%s, 'h')", [event_id]
        )
        assert await scene.run(gives_up, event_id, inbox="own") == Busy()
    assert await scene.run(never_claims, event_id, inbox="own") == DUPLICATE


async def test_a_copy_that_a_repeatable_read_cannot_see_is_a_duplicate(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    event_id = uuid4()

    def looks_first(event: Event[Any], context: Context) -> None:
        with psycopg.connect(scene.dsn) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.execute("SELECT 1")
            scene.rows(
                "INSERT INTO outboxd.processed_events (event_id, handler) "
                f"VALUES ('{event_id}', 'h') RETURNING 1"
            )
            context.claim(connection)

    assert await scene.run(looks_first, event_id, inbox="own") == DUPLICATE
    assert caplog.records == [], "nobody has failed"


async def test_an_asynchronous_claim_that_nobody_awaits_claims_nothing(scene: Scene) -> None:
    async def believes(event: Event[Any], context: Context) -> None:
        async with of_session_async(scene.dsn) as (session, write):
            if context.claim(session):
                await write(event.id)

    async def ignores(event: Event[Any], context: Context) -> None:
        async with of_session_async(scene.dsn) as (session, write):
            context.claim(session)
            await write(event.id)

    ending = await scene.run(believes, inbox="own")
    assert isinstance(ending, Raised)
    assert "write `await context.claim(...)`" in ending.error
    assert scene.ledger == []
    ending = await scene.run(ignores, inbox="own")
    assert isinstance(ending, Raised)
    assert "returned without claiming" in ending.error


async def test_a_connection_lost_in_the_handler_is_no_ones_fault(scene: Scene) -> None:
    def loses(event: Event[Any], context: Context) -> None:
        with of_session(scene.dsn) as (session, _):
            context.claim(session)
            session.execute(sqlalchemy.text(TERMINATE))

    def loses_in_django(event: Event[Any], context: Context) -> None:
        with of_django(scene.dsn) as (connection, _):
            context.claim(connection)
            with connection.cursor() as cursor:
                cursor.execute(TERMINATE)

    async def loses_async(event: Event[Any], context: Context) -> None:
        async with of_session_async(scene.dsn) as (session, _):
            await context.claim(session)
            await session.execute(sqlalchemy.text(TERMINATE))

    for handler in (loses, loses_in_django, loses_async):
        assert isinstance(await scene.run(handler, inbox="own"), Away)
    assert scene.marks == 0


async def test_a_connection_that_is_kept_after_its_loss_is_the_handlers_fault(
    scene: Scene,
) -> None:
    """Else it would be called for ever, at nobody's expense."""
    kept = psycopg.connect(scene.dsn)

    def keeps(event: Event[Any], context: Context) -> None:
        context.claim(kept)
        kept.commit()

    with pytest.raises(psycopg.OperationalError):
        kept.execute(TERMINATE)
    for _ in range(2):
        ending = await scene.run(keeps, inbox="own")
        assert isinstance(ending, Raised)
        assert "the connection is lost" in ending.error


@pytest.mark.parametrize("bring", [of_psycopg, of_sqlalchemy])
async def test_a_session_that_was_ended_for_idling_is_the_handlers_fault(
    scene: Scene, bring: Any
) -> None:
    """Also if a library has wrapped the error."""

    def idles(event: Event[Any], context: Context) -> None:
        with bring(scene.dsn) as (connection, write):
            limit = "SET LOCAL idle_in_transaction_session_timeout = '10ms'"
            connection.execute(limit if bring is of_psycopg else sqlalchemy.text(limit))
            context.claim(connection)
            outlive(raw_connection(connection).info.backend_pid)
            write(event.id)

    ending = await scene.run(idles, inbox="own")
    assert isinstance(ending, Raised)
    assert ending.sqlstate == "25P03"


async def test_a_mark_that_cannot_be_looked_for_is_left_to_the_next_delivery(scene: Scene) -> None:
    def works(event: Event[Any], context: Context) -> None:
        with of_psycopg(scene.dsn) as (connection, write):
            if context.claim(connection):
                write(event.id)

    event_id = uuid4()
    away = DatabaseSettings(url="postgresql://nobody:secret@127.0.0.1:1/none")
    async with consumer_database(away, "test", "orders") as nowhere:
        database = msgspec.structs.replace(scene.database, inbox=nowhere.inbox)
        runner = Runner([loaded(works, inbox="own")], concurrency=1, database=database)
        assert isinstance(await runner.run("h", a_call(event_id)), Away)
    assert await scene.run(works, event_id, inbox="own") == DUPLICATE
    assert scene.effects == [event_id]


async def test_each_mode_says_how_to_publish_and_what_to_claim(scene: Scene) -> None:
    def publishes(event: Event[Any], context: Context) -> None:
        context.publish(NEW)

    async def claims(event: Event[Any], context: Context) -> Done:
        async with AsyncSession() as session:
            await context.claim(session)
        return Done()

    ending = await scene.run(publishes, inbox="own")
    assert isinstance(ending, Raised)
    assert "call outboxd.publish(connection, event) within it" in ending.error
    for inbox in ("transaction", "after", "off"):
        ending = await scene.run(claims, inbox=inbox)
        assert isinstance(ending, Raised)
        assert 'that is for handlers with inbox = "own"' in ending.error
