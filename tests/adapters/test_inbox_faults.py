"""Inbox transactions through outages, timeouts and cancellations; and publishing within them."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import uuid4

import anyio
import msgspec
import psycopg
import pytest

from outboxd import Context, Event, NewEvent
from outboxd.adapters.handlers import Runner
from outboxd.adapters.postgres.consumer_database import consumer_database
from outboxd.adapters.postgres.marks import uncommitted
from outboxd.adapters.postgres.transactions import Transactions
from outboxd.core.errors import Unavailable
from outboxd.core.judging import Away, Ending, Raised, TimedOut
from outboxd.core.settings import DatabaseSettings
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
    outlive,
)


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    async with a_scene(database) as scene:
        yield scene


def writes(event: Event[Any], tx: Tx) -> None:
    tx.execute(WRITE, (event.id, "written"))


async def writes_async(event: Event[Any], tx: AsyncTx) -> None:
    await tx.execute(WRITE, (event.id, "written"))


def dies(event: Event[Any], tx: Tx) -> None:
    writes(event, tx)
    tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")


async def dies_async(event: Event[Any], tx: AsyncTx) -> None:
    await writes_async(event, tx)
    await tx.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def dies_unnoticed(event: Event[Any], tx: Tx) -> None:
    try:
        dies(event, tx)
    except psycopg.OperationalError:
        return


@pytest.mark.parametrize("handler", [dies, dies_async, dies_unnoticed])
async def test_a_connection_lost_while_the_handler_runs_is_no_ones_fault(
    scene: Scene, handler: Any
) -> None:
    event_id = uuid4()
    assert isinstance(await scene.run(handler, event_id), Away)
    assert (scene.ledger, scene.marks) == ([], 0)
    assert await scene.run(writes, event_id) == DONE


async def test_a_session_that_the_server_ended_for_idling_is_the_handlers_fault(
    scene: Scene,
) -> None:
    """Else a handler that is always too slow would be called for ever, at nobody's expense."""

    def idles(event: Event[Any], tx: Tx) -> None:
        tx.execute("SET LOCAL idle_in_transaction_session_timeout = '10ms'")
        outlive(tx.info.backend_pid)
        tx.execute("SELECT 1")

    ending = await scene.run(idles)
    assert isinstance(ending, Raised)
    assert ending.sqlstate == "25P03"


class LosesTheAnswer(Transactions):
    """The connection breaks around the COMMIT: before the server has it, or before we know."""

    committed = True

    def _commit(self, connection: Any, mark: Any) -> Ending | None:
        if self.committed:
            assert super()._commit(connection, mark) is None
        connection.hang_up()
        return uncommitted(connection, mark.handler, psycopg.OperationalError("lost"))


@pytest.mark.parametrize("committed", [True, False])
async def test_a_commit_of_unknown_fate_is_settled_by_the_next_delivery(
    scene: Scene, committed: bool
) -> None:
    transactions = LosesTheAnswer(scene.database.transactions._connections, "outboxd")
    transactions.committed = committed
    database = msgspec.structs.replace(scene.database, transactions=transactions)
    runner = Runner([loaded(writes)], concurrency=1, database=database)
    event_id = uuid4()
    assert isinstance(await runner.run("h", a_call(event_id)), Away)
    assert await scene.run(writes, event_id) == (DUPLICATE if committed else DONE)
    assert scene.ledger == ["written"]


@pytest.mark.parametrize("handler", [writes, writes_async])
async def test_a_database_that_cannot_be_reached_is_an_outage(handler: Any) -> None:
    settings = DatabaseSettings(url="postgresql://nobody:secret@127.0.0.1:1/none")
    async with consumer_database(settings, "test", "orders") as database:
        runner = Runner([loaded(handler)], concurrency=1, database=database)
        ending = await runner.run("h", a_call())
        assert isinstance(ending, Away)
        assert "secret" not in ending.error
        with pytest.raises(Unavailable):
            await database.inbox.ping()


async def test_an_async_handler_out_of_time_is_rolled_back(scene: Scene) -> None:
    async def sleeps(event: Event[Any], tx: AsyncTx) -> None:
        await writes_async(event, tx)
        await anyio.sleep(60)

    async def waits_in_the_server(event: Event[Any], tx: AsyncTx) -> None:
        await writes_async(event, tx)
        await tx.execute("SELECT pg_sleep(60)")

    for handler in (sleeps, waits_in_the_server):
        event_id = uuid4()
        ending = await scene.run(handler, event_id, timeout_seconds=0.1)
        assert ending == TimedOut(0.1)
        assert (scene.ledger, scene.marks) == ([], 0)
        assert await scene.run(writes_async, event_id) == DONE
        scene.rows("DELETE FROM ledger RETURNING 1")
        scene.rows("DELETE FROM outboxd.processed_events RETURNING 1")


async def test_a_cancelled_run_commits_nothing_and_leaves_no_lock(scene: Scene) -> None:
    started = anyio.Event()

    async def swallows(event: Event[Any], tx: AsyncTx) -> None:
        await writes_async(event, tx)
        started.set()
        try:
            await anyio.sleep(60)
        except BaseException:
            return

    event_id = uuid4()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(scene.run, swallows, event_id))
        await started.wait()
        tasks.cancel_scope.cancel()
    assert (scene.ledger, scene.marks) == ([], 0)
    assert await scene.run(writes, event_id) == DONE


async def test_a_statement_that_is_cut_short_is_cancelled_in_the_server(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also over a slow network, where the cancelling itself is still under way when the cancelled
    scope cancels it."""
    cancel_safe = psycopg.AsyncConnection.cancel_safe

    async def takes_its_time(self: AsyncTx, *, timeout: float = 30.0) -> None:
        await anyio.sleep(0.05)
        await cancel_safe(self, timeout=timeout)

    async def waits_in_the_server(event: Event[Any], tx: AsyncTx) -> None:
        await writes_async(event, tx)
        await tx.execute("SELECT pg_sleep(60)")

    monkeypatch.setattr(psycopg.AsyncConnection, "cancel_safe", takes_its_time)
    event_id = uuid4()
    assert await scene.run(waits_in_the_server, event_id, timeout_seconds=0.1) == TimedOut(0.1)
    assert await scene.run(writes, event_id) == DONE, "the mark's lock is gone"


async def test_connections_are_used_again(scene: Scene) -> None:
    pids: set[int] = set()

    def notes_its_server(event: Event[Any], tx: Tx) -> None:
        pids.add(tx.info.backend_pid)

    for _ in range(5):
        await scene.run(notes_its_server)
    assert len(pids) == 1


NEW = NewEvent(type="order.paid", aggregate_type="order", aggregate_id="17", payload={"a": 1})


def publishes(event: Event[Any], context: Context) -> None:
    context.publish(NEW)


async def publishes_async(event: Event[Any], context: Context) -> None:
    await context.publish(NEW)


@pytest.mark.parametrize("handler", [publishes, publishes_async])
async def test_an_event_is_published_with_the_handlers_own_commit(
    scene: Scene, handler: Any
) -> None:
    assert await scene.run(handler) == DONE
    assert scene.rows("SELECT event_type FROM outboxd.outbox_events") == [("order.paid",)]


async def test_an_event_that_a_handler_publishes_continues_the_trace(scene: Scene) -> None:
    """Without OpenTelemetry too, where no span of the handler's stands between the two."""
    traceparent = "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01"

    def publishes(event: Event[Any], context: Context) -> None:
        context.publish(NEW)

    call = a_call()
    traced = msgspec.structs.replace(
        call, incoming=msgspec.structs.replace(call.incoming, traceparent=traceparent)
    )
    assert await scene.runner(publishes).run("h", traced) == DONE
    assert scene.rows("SELECT headers ->> 'traceparent' FROM outboxd.outbox_events") == [
        (traceparent,)
    ]


async def test_an_event_published_by_a_handler_that_fails_is_not_published(scene: Scene) -> None:
    async def then_fails(event: Event[Any], context: Context) -> None:
        await context.publish(NEW)
        raise ValueError

    await scene.run(then_fails)
    assert scene.rows("SELECT event_type FROM outboxd.outbox_events") == []


async def test_a_publish_that_nobody_awaited_is_a_failure_not_a_loss(scene: Scene) -> None:
    async def forgets(event: Event[Any], context: Context) -> None:
        context.publish(NEW)

    ending = await scene.run(forgets)
    assert isinstance(ending, Raised)
    assert "did not await" in ending.error
    assert scene.marks == 0
