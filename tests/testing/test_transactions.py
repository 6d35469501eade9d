"""`outboxd.testing.run` on a real connection: changes stay if and only if the handler succeeds."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from outboxd import Context, DeadLetter, Done, Event, NewEvent, Reject, Retry
from outboxd.core.outcomes import DeadReason
from outboxd.testing import run, run_async

EVENT = NewEvent("order.placed", "order", "o-1", {})
TABLES = """
    CREATE TABLE effects (number int UNIQUE DEFERRABLE INITIALLY DEFERRED);
    INSERT INTO effects VALUES (0)
"""


@pytest.fixture
def dsn(database: str) -> str:
    with psycopg.connect(database) as connection:
        connection.execute(TABLES)
    return database


@pytest.fixture
def tx(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn) as connection:
        yield connection
        if not connection.closed:
            connection.rollback()


@pytest.fixture
async def async_tx(dsn: str) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(dsn) as connection:
        yield connection
        await connection.rollback()


def effects(dsn: str) -> int:
    """What others see."""
    with psycopg.connect(dsn) as connection:
        return len(connection.execute("SELECT FROM effects").fetchall())


def seen(tx: Connection[Any]) -> int:
    return len(tx.execute("SELECT FROM effects").fetchall())


def adds(event: Event[Any], tx: Connection[Any]) -> None:
    tx.execute("INSERT INTO effects VALUES (1)")


def adds_and_rejects(event: Event[Any], tx: Connection[Any]) -> None:
    tx.execute("INSERT INTO effects VALUES (1)")
    raise Reject("no")


def adds_twice(event: Event[Any], tx: Connection[Any]) -> None:
    tx.execute("INSERT INTO effects VALUES (0)")


def hides_an_error(event: Event[Any], tx: Connection[Any]) -> None:
    tx.execute("INSERT INTO effects VALUES (1)")
    with suppress(psycopg.Error):
        tx.execute("SELECT 1 / 0")


def recovers(event: Event[Any], tx: Connection[Any]) -> None:
    tx.execute("INSERT INTO effects VALUES (1)")
    with suppress(psycopg.Error), tx.transaction():
        tx.execute("SELECT 1 / 0")


def commits(event: Event[Any], tx: Connection[Any]) -> None:
    tx.execute("INSERT INTO effects VALUES (1)")
    tx.commit()


def commits_in_sql(event: Event[Any], tx: Connection[Any]) -> None:
    tx.execute("INSERT INTO effects VALUES (1)")
    tx.execute("COMMIT")


def hangs_up(event: Event[Any], tx: Connection[Any]) -> None:
    tx.close()


def publishes(event: Event[Any], tx: Connection[Any], context: Context) -> None:
    context.publish(NewEvent("order.counted", "order", "o-1", {"number": 1}))


async def adds_asynchronously(event: Event[Any], tx: AsyncConnection[Any]) -> None:
    await tx.execute("INSERT INTO effects VALUES (1)")


async def adds_and_rejects_asynchronously(event: Event[Any], tx: AsyncConnection[Any]) -> None:
    await tx.execute("INSERT INTO effects VALUES (1)")
    raise Reject("no")


async def adds_twice_asynchronously(event: Event[Any], tx: AsyncConnection[Any]) -> None:
    await tx.execute("INSERT INTO effects VALUES (0)")


async def publishes_without_awaiting(
    event: Event[Any], tx: AsyncConnection[Any], context: Context
) -> None:
    context.publish(NewEvent("order.counted", "order", "o-1", {}))


def test_a_success_stays_in_the_open_transaction(tx: Connection[Any], dsn: str) -> None:
    tx.execute("SELECT 1")

    assert run(adds, EVENT, tx=tx) == Done()

    assert (seen(tx), effects(dsn)) == (2, 1)
    assert tx.info.transaction_status is TransactionStatus.INTRANS


def test_a_success_is_committed_if_no_transaction_is_open(tx: Connection[Any], dsn: str) -> None:
    assert run(adds, EVENT, tx=tx) == Done()

    assert effects(dsn) == 2
    assert tx.info.transaction_status is TransactionStatus.IDLE


@pytest.mark.parametrize("open_before", [True, False])
def test_anything_else_leaves_nothing(tx: Connection[Any], dsn: str, open_before: bool) -> None:
    if open_before:
        tx.execute("INSERT INTO effects VALUES (5)")

    outcome = run(adds_and_rejects, EVENT, tx=tx)

    assert outcome == DeadLetter(DeadReason.REJECTED, "Reject: no")
    assert seen(tx) == (2 if open_before else 1)


def test_a_deferred_constraint_is_looked_at_as_a_commit_would(tx: Connection[Any]) -> None:
    tx.execute("SELECT 1")

    outcome = run(adds_twice, EVENT, tx=tx)

    assert isinstance(outcome, Retry)
    assert "UniqueViolation" in outcome.error
    assert seen(tx) == 1
    tx.execute("INSERT INTO effects VALUES (0)")  # still deferred for the test itself


def test_a_swallowed_database_error_is_no_success(tx: Connection[Any]) -> None:
    outcome = run(hides_an_error, EVENT, tx=tx)

    assert isinstance(outcome, Retry)
    assert "caught a database error and went on" in outcome.error
    assert seen(tx) == 1


def test_an_error_within_a_savepoint_of_the_handler_s_own_is_none(tx: Connection[Any]) -> None:
    assert run(recovers, EVENT, tx=tx) == Done()
    assert seen(tx) == 2


@pytest.mark.parametrize("handler", [commits, commits_in_sql])
@pytest.mark.parametrize("open_before", [True, False])
def test_a_handler_must_not_end_its_transaction(
    tx: Connection[Any], handler: Any, open_before: bool
) -> None:
    if open_before:
        tx.execute("SELECT 1")

    outcome = run(handler, EVENT, tx=tx)

    assert isinstance(outcome, Retry)
    assert "commit" in outcome.error.lower()


def test_a_handler_that_hangs_up_has_not_succeeded(tx: Connection[Any], dsn: str) -> None:
    assert isinstance(run(hangs_up, EVENT, tx=tx), Retry)


def test_an_event_is_published_in_the_handler_s_transaction(tx: Connection[Any]) -> None:
    assert run(publishes, EVENT, tx=tx) == Done()

    rows = tx.execute("SELECT event_type FROM outboxd.outbox_events").fetchall()
    assert rows == [("order.counted",)]


def test_a_schema_that_has_no_outbox_is_a_failure_of_the_handler(tx: Connection[Any]) -> None:
    outcome = run(publishes, EVENT, tx=tx, schema="elsewhere")

    assert isinstance(outcome, Retry)
    assert "UndefinedTable" in outcome.error


async def test_an_asynchronous_success_stays(async_tx: AsyncConnection[Any]) -> None:
    assert await run_async(adds_asynchronously, EVENT, tx=async_tx) == Done()

    cursor = await async_tx.execute("SELECT FROM effects")
    assert len(await cursor.fetchall()) == 2


@pytest.mark.parametrize(
    ("handler", "kind", "text"),
    [
        (adds_and_rejects_asynchronously, DeadLetter, "Reject: no"),
        (adds_twice_asynchronously, Retry, "UniqueViolation"),
        (publishes_without_awaiting, Retry, "did not await context.publish()"),
    ],
)
async def test_an_asynchronous_failure_leaves_nothing(
    async_tx: AsyncConnection[Any], handler: Any, kind: type, text: str
) -> None:
    await async_tx.execute("SELECT 1")

    outcome = await run_async(handler, EVENT, tx=async_tx)

    assert isinstance(outcome, Retry | DeadLetter)
    assert type(outcome) is kind
    assert text in outcome.error
    cursor = await async_tx.execute("SELECT FROM effects")
    assert len(await cursor.fetchall()) == 1


async def test_a_synchronous_handler_runs_in_a_thread_beside_the_loop(tx: Connection[Any]) -> None:
    assert await run_async(adds, EVENT, tx=tx) == Done()
    assert seen(tx) == 2


class FakeTx:
    def __init__(self) -> None:
        self.executed: list[str] = []

    def execute(self, query: str) -> None:
        self.executed.append(query)


def test_a_fake_is_handed_over_as_it_is() -> None:
    fake = FakeTx()

    assert run(adds, EVENT, tx=fake) == Done()

    assert fake.executed == ["INSERT INTO effects VALUES (1)"]


def test_a_missing_transaction_is_an_error_of_the_test() -> None:
    with pytest.raises(TypeError, match=r"asks for `tx`: give it a connection, run\(\.\.\., tx="):
        run(adds, EVENT)


async def test_a_connection_of_the_wrong_kind_is_an_error_of_the_test(
    tx: Connection[Any], async_tx: AsyncConnection[Any]
) -> None:
    with pytest.raises(TypeError, match="is asynchronous, and `tx` is a Connection"):
        await run_async(adds_asynchronously, EVENT, tx=tx)
    with pytest.raises(TypeError, match="is synchronous, and `tx` is a AsyncConnection"):
        run(adds, EVENT, tx=async_tx)
