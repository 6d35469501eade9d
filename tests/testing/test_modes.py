"""`outboxd.testing.run` for batches and for handlers that bring their own transaction."""

from collections.abc import Iterator
from typing import Any

import msgspec
import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from outboxd import BatchContext, Context, DeadLetter, Done, Event, NewEvent, Reject, Retry
from outboxd.core.errors import SettingsError
from outboxd.core.outcomes import DeadReason, Outcome
from outboxd.testing import run, run_async
from tests.adapters.bringers import sqlalchemy_url


class Paid(msgspec.Struct):
    total: int


def an_event(total: Any = 5) -> NewEvent:
    return NewEvent("order.paid", "order", "17", {"total": total})


def adds(events: list[Event[Paid]], tx: psycopg.Connection[Any]) -> None:
    with tx.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO sums VALUES (%s)", [(event.payload.total,) for event in events]
        )


async def adds_async(events: list[Event[Paid]], context: BatchContext) -> None:
    assert [event.payload.total for event in events] == [5, 7]
    assert (context.queue, context.seconds_left() > 0) == ("test", True)


def adds_and_rejects(events: list[Event[Paid]], tx: psycopg.Connection[Any]) -> None:
    adds(events, tx)
    raise Reject("too many")


@pytest.fixture
def tx(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE sums (total int)")
        connection.commit()
        yield connection
        connection.rollback()


def sums(tx: psycopg.Connection[Any]) -> list[int]:
    return [total for (total,) in tx.execute("SELECT total FROM sums").fetchall()]


def test_a_list_of_events_is_a_batch(tx: psycopg.Connection[Any]) -> None:
    assert run(adds, [an_event(5), an_event(7)], tx=tx) == Done()
    assert run(adds, [an_event(9)], tx=tx) == Done()
    assert sums(tx) == [5, 7, 9]


async def test_an_asynchronous_batch() -> None:
    assert await run_async(adds_async, [an_event(5), an_event(7)]) == Done()


def test_a_failed_batch_leaves_nothing(tx: psycopg.Connection[Any]) -> None:
    outcome = run(adds_and_rejects, [an_event(5), an_event(7)], tx=tx)
    assert outcome == DeadLetter(DeadReason.REJECTED, "Reject: too many")
    assert sums(tx) == []


def test_a_payload_that_does_not_fit_keeps_its_batch_from_the_handler() -> None:
    outcome = run(lambda events: None, [an_event(), an_event()])
    assert outcome == Done()
    unfit = run(adds_async, [an_event(5), an_event("x")])
    assert isinstance(unfit, DeadLetter)
    assert unfit.reason is DeadReason.INVALID_PAYLOAD


def test_a_batch_of_nothing_is_an_error_of_the_test() -> None:
    with pytest.raises(ValueError, match="this list is empty"):
        run(adds_async, [])


def test_events_and_lists_are_not_mixed_up() -> None:
    with pytest.raises(SettingsError, match="is called with one at a time"):
        run(adds_async, an_event())
    with pytest.raises(SettingsError, match="with `batch` it is called with a list"):
        run(lambda_of_one, [an_event()])


def lambda_of_one(event: Event[Paid]) -> None: ...


class Applies:
    """A handler with a session of its own."""

    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self._engine = engine

    def __call__(self, event: Event[Paid], context: Context) -> Outcome | None:
        with Session(self._engine) as session, session.begin():
            if context.claim(session):
                session.execute(
                    sqlalchemy.text("INSERT INTO sums VALUES (:total)"),
                    {"total": event.payload.total},
                )
            if event.payload.total < 0:
                raise ValueError("less than nothing")
        return None


@pytest.fixture
def engine(database: str) -> sqlalchemy.Engine:
    return sqlalchemy.create_engine(sqlalchemy_url(database), poolclass=NullPool)


def test_a_handler_claims_on_its_own_connection(
    engine: sqlalchemy.Engine, tx: psycopg.Connection[Any]
) -> None:
    handler, event = Applies(engine), an_event()
    assert run(handler, event, inbox="own") == Done()
    assert run(handler, event, inbox="own") == Done(duplicate=True)
    assert sums(tx) == [5]


def test_a_handler_that_fails_in_its_own_transaction_is_tried_again(
    engine: sqlalchemy.Engine, tx: psycopg.Connection[Any]
) -> None:
    outcome = run(Applies(engine), an_event(-1), inbox="own")
    assert outcome == Retry(2, "ValueError: less than nothing")
    assert sums(tx) == []


def test_a_claim_that_was_forgotten_is_a_failure() -> None:
    def forgets(event: Event[Paid], context: Context) -> None: ...

    outcome = run(forgets, an_event(), inbox="own")
    assert isinstance(outcome, Retry)
    assert "returned without claiming its event" in outcome.error


def test_a_claim_without_that_mode_is_a_failure(engine: sqlalchemy.Engine) -> None:
    outcome = run(Applies(engine), an_event())
    assert isinstance(outcome, Retry)
    assert 'that is for handlers with inbox = "own"' in outcome.error


def test_a_claim_in_a_transaction_that_the_test_keeps_open(tx: psycopg.Connection[Any]) -> None:
    def applies(event: Event[Paid], context: Context) -> None:
        with tx.transaction():
            assert context.claim(tx)

    tx.execute("SELECT 1")
    assert run(applies, an_event(), inbox="own") == Done()
    assert tx.execute("SELECT count(*) FROM outboxd.processed_events").fetchone() == (1,)


def test_a_transaction_cannot_be_given_as_well(
    engine: sqlalchemy.Engine, tx: psycopg.Connection[Any]
) -> None:
    """context.publish would work here and fail in the daemon."""
    with pytest.raises(TypeError, match='with inbox="own" the daemon has no `tx` to give'):
        run(Applies(engine), an_event(), tx=tx, inbox="own")


def test_a_transaction_cannot_be_asked_for_as_well() -> None:
    def asks(event: Event[Paid], tx: psycopg.Connection[Any], context: Context) -> None: ...

    with pytest.raises(SettingsError, match="it brings its own transaction"):
        run(asks, an_event(), inbox="own")
