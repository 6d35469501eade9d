"""Publishing inside SQLAlchemy's transactions, as SQLAlchemy 2 itself opens and ends them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy import Engine, select, text
from sqlalchemy.ext.asyncio import (
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    Session,
    mapped_column,
    scoped_session,
    sessionmaker,
)
from sqlalchemy.pool import NullPool

from outboxd import NewJob, PublishRefused, enqueue, publish, publish_many
from tests.adapters.bringers import sqlalchemy_url
from tests.producer_scene import an_event, payloads, rows


class Model(DeclarativeBase):
    pass


class Order(Model):
    __tablename__ = "orders"

    id: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]


class Odd(Exception):
    pass


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    engine = sqlalchemy.create_engine(sqlalchemy_url(database), poolclass=NullPool)
    Model.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        session.add(Order(id="o-1", status="new"))
    yield engine
    engine.dispose()


@pytest.fixture
async def async_engine(database: str, engine: Engine) -> AsyncIterator[AsyncEngine]:
    made = create_async_engine(sqlalchemy_url(database), poolclass=NullPool)
    yield made
    await made.dispose()


def statuses(dsn: str) -> list[str]:
    return [status for (status,) in rows(dsn, "SELECT status FROM orders ORDER BY id")]


def test_a_connections_transaction_holds_the_event(database: str, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE orders SET status = 'paid'"))
        publish(connection, an_event(1))
        assert payloads(database) == []

    assert (statuses(database), payloads(database)) == (["paid"], [1])


def test_a_connection_that_only_publishes_commits(database: str, engine: Engine) -> None:
    """A transaction that only psycopg knows of would be forgotten by SQLAlchemy's COMMIT."""
    with engine.connect() as connection:
        publish(connection, an_event(1))
        connection.commit()

    assert payloads(database) == [1]


@pytest.mark.parametrize("ends", ["rollback", "close"])
def test_what_is_not_committed_publishes_nothing(database: str, engine: Engine, ends: str) -> None:
    with engine.connect() as connection:
        connection.execute(text("UPDATE orders SET status = 'paid'"))
        publish_many(connection, [an_event(1), an_event(2)])
        getattr(connection, ends)()

    assert (statuses(database), payloads(database)) == (["new"], [])


def test_an_exception_publishes_nothing(database: str, engine: Engine) -> None:
    with suppress(Odd), Session(engine) as session, session.begin():
        publish(session, an_event(1))
        raise Odd

    assert payloads(database) == []


def test_a_savepoint_takes_its_events_with_it(database: str, engine: Engine) -> None:
    with Session(engine) as session, session.begin():
        publish(session, an_event("before"))
        with suppress(Odd), session.begin_nested():
            publish(session, an_event("within"))
            raise Odd
        with session.begin_nested():
            enqueue(session, NewJob("mail.send", "nested"))

    assert payloads(database) == ["before", "nested"]


def test_a_session_publishes_with_the_objects_it_holds(database: str, engine: Engine) -> None:
    with Session(engine) as session:
        order = session.get_one(Order, "o-1")
        order.status = "paid"
        session.add(Order(id="o-2", status="new"))
        publish(session, an_event(1), ordered=True)
        session.commit()

    assert (statuses(database), payloads(database)) == (["paid", "new"], [1])


def test_a_changed_row_is_locked_before_its_event_is_numbered(
    database: str, engine: Engine
) -> None:
    """Else two writers that take turns on the row could be numbered in the wrong order."""
    with Session(engine) as session:
        session.get_one(Order, "o-1").status = "paid"
        publish(session, an_event(1))

        with pytest.raises(psycopg.errors.LockNotAvailable):
            rows(database, "SELECT 1 FROM orders WHERE id = 'o-1' FOR UPDATE NOWAIT")
        session.rollback()


def test_a_session_that_flushes_by_hand_is_left_to_it(database: str, engine: Engine) -> None:
    with Session(engine) as session:
        with session.no_autoflush:
            session.get_one(Order, "o-1").status = "paid"
            publish(session, an_event(1))

        assert rows(database, "SELECT 1 FROM orders WHERE id = 'o-1' FOR UPDATE NOWAIT") == [(1,)]
        session.commit()

    assert (statuses(database), payloads(database)) == (["paid"], [1])


def test_a_scoped_session_is_one_too(database: str, engine: Engine) -> None:
    registry = scoped_session(sessionmaker(engine))
    registry.get_one(Order, "o-1").status = "paid"
    publish(registry, an_event(1))
    registry.commit()
    registry.remove()

    assert (statuses(database), payloads(database)) == (["paid"], [1])


def test_the_isolation_level_autocommit_is_refused(database: str, engine: Engine) -> None:
    with (
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        pytest.raises(PublishRefused, match=r"SQLAlchemy: `engine\.begin\(\)` without AUTOCOMMIT"),
    ):
        publish(connection, an_event(1))

    assert payloads(database) == []


def test_another_driver_is_named() -> None:
    sqlite = sqlalchemy.create_engine("sqlite://")
    with sqlite.begin() as connection, pytest.raises(TypeError, match=r"driver is sqlite3\."):
        publish(connection, an_event(1))
    sqlite.dispose()


async def test_an_asynchronous_connection_is_awaited(
    database: str, async_engine: AsyncEngine
) -> None:
    async with async_engine.begin() as connection:
        await connection.execute(text("UPDATE orders SET status = 'paid'"))
        event = an_event(1)
        assert await publish(connection, event, ordered=True) == event.id
    async with async_engine.connect() as connection:
        await publish(connection, an_event(2))
        await connection.rollback()
        await publish_many(connection, [an_event(3), an_event(4)])
        await connection.commit()

    assert (statuses(database), payloads(database)) == (["paid"], [1, 3, 4])


async def test_an_asynchronous_session_holds_the_event(
    database: str, async_engine: AsyncEngine
) -> None:
    async with AsyncSession(async_engine) as session, session.begin():
        (await session.get_one(Order, "o-1")).status = "paid"
        await publish(session, an_event("before"))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            rows(database, "SELECT 1 FROM orders WHERE id = 'o-1' FOR UPDATE NOWAIT")
        with suppress(Odd):
            async with session.begin_nested():
                await publish(session, an_event("within"))
                raise Odd
        await enqueue(session, NewJob("mail.send", "after"))

    assert (statuses(database), payloads(database)) == (["paid"], ["before", "after"])


async def test_an_asynchronous_session_that_fails_publishes_nothing(
    database: str, async_engine: AsyncEngine
) -> None:
    with suppress(Odd):
        async with AsyncSession(async_engine) as session, session.begin():
            await publish(session, an_event(1))
            raise Odd

    assert payloads(database) == []


async def test_an_asynchronous_scoped_session_is_one_too(
    database: str, async_engine: AsyncEngine
) -> None:
    registry: Any = async_scoped_session(async_sessionmaker(async_engine), scopefunc=lambda: 1)
    (await registry.scalars(select(Order))).one().status = "paid"
    await publish(registry, an_event(1))
    await registry.commit()
    await registry.remove()

    assert (statuses(database), payloads(database)) == (["paid"], [1])


async def test_the_isolation_level_autocommit_is_refused_asynchronously(
    database: str, async_engine: AsyncEngine
) -> None:
    engine = async_engine.execution_options(isolation_level="AUTOCOMMIT")
    async with engine.connect() as connection:
        with pytest.raises(PublishRefused, match="autocommit"):
            await publish(connection, an_event(1))

    assert payloads(database) == []
