"""The inbox on a real PostgreSQL: one effect for each event and handler, whatever happens."""

import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import anyio
import msgspec
import psycopg
import pytest
from anyio import to_thread

from outboxd import Context, DeadLetter, Done, Event, NewEvent, Reject, Retry, RetryLater
from outboxd.adapters.handlers import Runner
from outboxd.adapters.postgres.consumer_database import ConsumerDatabase, consumer_database
from outboxd.adapters.postgres.marks import uncommitted
from outboxd.adapters.postgres.transactions import Transactions
from outboxd.core.clock import boottime
from outboxd.core.envelopes import Incoming
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.judging import Away, Busy, Ending, Raised, Returned, TimedOut
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadReason
from outboxd.core.settings import DatabaseSettings
from outboxd.ports.handling import Call
from outboxd.producer import publish
from tests.consumer.scene import loaded

Tx = psycopg.Connection[Any]
AsyncTx = psycopg.AsyncConnection[Any]

DUPLICATE = Returned(Done(duplicate=True))
DONE = Returned(Done())

LEDGER = "CREATE TABLE ledger (event_id uuid, note text)"
WRITE = "INSERT INTO ledger VALUES (%s, %s)"


class Scene:
    """A database with an append-only ledger, and a way to run one handler on one event."""

    def __init__(self, dsn: str, database: ConsumerDatabase) -> None:
        self.dsn = dsn
        self.database = database

    def runner(self, function: Callable[..., Any], **changes: Any) -> Runner:
        handler = loaded(function, "h", **{"inbox": "transaction", **changes})
        return Runner([handler], concurrency=4, database=self.database, publish=publish)

    async def run(
        self, function: Callable[..., Any], event_id: UUID | None = None, **changes: Any
    ) -> Ending:
        return await self.runner(function, **changes).run("h", a_call(event_id))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    @property
    def ledger(self) -> list[str]:
        return [note for _, note in self.rows("SELECT * FROM ledger")]

    @property
    def marks(self) -> int:
        return len(self.rows("SELECT 1 FROM outboxd.processed_events"))


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(LEDGER)
    async with consumer_database(DatabaseSettings(url=database), "test") as opened:
        yield Scene(database, opened)


def a_call(event_id: UUID | None = None, seconds: float = 30.0) -> Call:
    incoming = Incoming(
        id=event_id or uuid4(),
        type="order.created",
        aggregate_type="order",
        aggregate_id="17",
        occurred_at=datetime(2024, 5, 1, tzinfo=UTC),
        payload=msgspec.Raw(b"{}"),
    )
    return Call(incoming, "orders", 1, boottime() + seconds)


def a_message(message_id: str = "m1") -> ReceivedMessage:
    return ReceivedMessage(
        message_id=message_id, receipt_handle="r", receive_count=1, sent_at=0.0, body=""
    )


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
        handler = loaded(writes, name, inbox="transaction")
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
        time.sleep(0.2)
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
    runner = Runner([loaded(writes, "h", inbox="transaction")], concurrency=1, database=database)
    event_id = uuid4()
    assert isinstance(await runner.run("h", a_call(event_id)), Away)
    assert await scene.run(writes, event_id) == (DUPLICATE if committed else DONE)
    assert scene.ledger == ["written"]


@pytest.mark.parametrize("handler", [writes, writes_async])
async def test_a_database_that_cannot_be_reached_is_an_outage(handler: Any) -> None:
    settings = DatabaseSettings(url="postgresql://nobody:secret@127.0.0.1:1/none")
    async with consumer_database(settings, "test") as database:
        runner = Runner(
            [loaded(handler, "h", inbox="transaction")], concurrency=1, database=database
        )
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


async def test_after_marks_only_what_has_succeeded(scene: Scene) -> None:
    sent: list[str] = []

    async def mails(event: Event[Any]) -> None:
        sent.append("mail")
        if len(sent) == 1:
            raise ValueError("smtp")

    event_id = uuid4()
    assert isinstance(await scene.run(mails, event_id, inbox="after"), Raised)
    assert scene.marks == 0
    assert await scene.run(mails, event_id, inbox="after") == DONE
    assert await scene.run(mails, event_id, inbox="after") == DUPLICATE
    assert sent == ["mail"] * 2


async def test_after_does_not_repeat_its_effect_when_the_mark_fails_for_a_moment(
    scene: Scene,
) -> None:
    sent: list[str] = []

    def mails(event: Event[Any]) -> None:
        sent.append("mail")
        scene.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    event_id = uuid4()
    assert await scene.run(mails, event_id, inbox="after") == DONE
    assert await scene.run(mails, event_id, inbox="after") == DUPLICATE
    assert sent == ["mail"]


async def test_off_knows_nothing_of_repeats(scene: Scene) -> None:
    event_id = uuid4()
    calls: list[int] = []

    def handler(event: Event[Any]) -> None:
        calls.append(1)

    for _ in range(2):
        assert await scene.run(handler, event_id, inbox="off") == DONE
    assert (calls, scene.marks) == ([1, 1], 0)


async def test_failures_are_counted_by_event_and_handler(scene: Scene) -> None:
    inbox, event_id, message = scene.database.inbox, uuid4(), a_message()
    assert await inbox.failed(event_id, message, "h", "one") == 1
    assert await inbox.failed(event_id, message, "h", "t\0w\ud800o") == 2
    assert await inbox.failed(event_id, message, "other", "x") == 1
    standings = await inbox.standings(event_id, message, ["h", "other", "third"])
    assert {name: s.attempts for name, s in standings.items()} == {"h": 2, "other": 1}


async def test_two_copies_of_an_event_share_one_count(scene: Scene) -> None:
    """Each setting the other's back to one, an event that always fails would fail for ever."""
    inbox, event_id = scene.database.inbox, uuid4()
    counts = [await inbox.failed(event_id, a_message(m), "h", "x") for m in ("m1", "m2") * 2]
    assert counts == [1, 2, 3, 4]


async def test_what_is_dead_stays_dead_for_its_message_and_starts_afresh_for_a_redrive(
    scene: Scene,
) -> None:
    inbox, event_id, message = scene.database.inbox, uuid4(), a_message()
    letter = DeadLetter(DeadReason.TIMEOUT, "timed out: after 5 s")
    for _ in range(3):
        await inbox.failed(event_id, message, "h", "x")
    await inbox.dead(event_id, message, "h", letter)
    standing = (await inbox.standings(event_id, message, ["h"]))["h"]
    assert (standing.attempts, standing.dead) == (3, letter)
    redriven = a_message("m2")
    assert await inbox.standings(event_id, redriven, ["h"]) == {}
    assert await inbox.failed(event_id, redriven, "h", "y") == 1
    assert (await inbox.standings(event_id, redriven, ["h"]))["h"].dead is None


async def test_what_is_done_stays_done_for_a_redrive(scene: Scene) -> None:
    event_id = uuid4()
    await scene.run(writes, event_id)
    standings = await scene.database.inbox.standings(event_id, a_message("m2"), ["h"])
    assert standings["h"].done


async def test_a_ping_asks_for_a_database_that_can_be_written_to(scene: Scene) -> None:
    await scene.database.inbox.ping()
    with psycopg.connect(scene.dsn, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode()
        )
    with pytest.raises(Unavailable, match="read-only"):
        await scene.database.inbox.ping()


async def test_a_ping_misses_tables_that_were_never_migrated(bare_database: str) -> None:
    async with consumer_database(DatabaseSettings(url=bare_database), "test") as database:
        with pytest.raises(Unavailable) as error:
            await database.inbox.ping()
    assert error.value.kind is OutageKind.MISSING
