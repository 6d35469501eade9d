"""Transactions as applications bring them: of psycopg, SQLAlchemy and Django."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID

import django
import psycopg
import sqlalchemy
from django.conf import settings
from django.db import close_old_connections, connections, transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from tests.adapters.handling_scene import WRITE

Write = Callable[[UUID], None]
WriteAsync = Callable[[UUID], Awaitable[None]]

INSERT = sqlalchemy.text("INSERT INTO ledger VALUES (:event_id, 'written')")


def sqlalchemy_url(dsn: str) -> sqlalchemy.URL:
    """The same database, as SQLAlchemy writes it."""
    given: dict[str, Any] = dict(conninfo_to_dict(dsn))
    return sqlalchemy.URL.create(
        "postgresql+psycopg",
        username=given["user"],
        database=given["dbname"],
        query={"host": given["host"], "port": str(given["port"])},
    )


@contextmanager
def of_psycopg(dsn: str) -> Iterator[tuple[Any, Write]]:
    with psycopg.connect(dsn) as connection:
        yield (
            connection,
            lambda event_id: _ignored(connection.execute(WRITE, (event_id, "written"))),
        )


@contextmanager
def of_psycopg_autocommit(dsn: str) -> Iterator[tuple[Any, Write]]:
    with psycopg.connect(dsn, autocommit=True) as connection, connection.transaction():
        yield (
            connection,
            lambda event_id: _ignored(connection.execute(WRITE, (event_id, "written"))),
        )


@contextmanager
def of_sqlalchemy(dsn: str) -> Iterator[tuple[Any, Write]]:
    engine = sqlalchemy.create_engine(sqlalchemy_url(dsn), poolclass=NullPool)
    with engine.begin() as connection:
        yield connection, lambda i: _ignored(connection.execute(INSERT, {"event_id": i}))


@contextmanager
def of_sqlalchemy_commit(dsn: str) -> Iterator[tuple[Any, Write]]:
    """Without `begin`: the first statement begins, and that is the claim."""
    engine = sqlalchemy.create_engine(sqlalchemy_url(dsn), poolclass=NullPool)
    with engine.connect() as connection:
        yield connection, lambda i: _ignored(connection.execute(INSERT, {"event_id": i}))
        connection.commit()


@contextmanager
def of_session(dsn: str) -> Iterator[tuple[Any, Write]]:
    engine = sqlalchemy.create_engine(sqlalchemy_url(dsn), poolclass=NullPool)
    with Session(engine) as session:
        yield session, lambda event_id: _ignored(session.execute(INSERT, {"event_id": event_id}))
        session.commit()


def use_django(dsn: str) -> None:
    """Have Django's default connection lead to this database, in every thread."""
    given: dict[str, Any] = dict(conninfo_to_dict(dsn))
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given["dbname"],
        "HOST": given["host"],
        "PORT": str(given["port"]),
        "USER": given["user"],
    }
    if not settings.configured:
        settings.configure(DATABASES={"default": database})
        django.setup()
    connections.settings["default"].update(database)


@contextmanager
def of_django(dsn: str) -> Iterator[tuple[Any, Write]]:
    """After `use_django`: which threads share is set up before there are any."""

    def write(event_id: UUID) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute(WRITE, (event_id, "written"))

    try:
        with transaction.atomic():
            yield django.db.connection, write
    finally:
        close_old_connections()
        connections.close_all()


@asynccontextmanager
async def of_psycopg_async(dsn: str) -> AsyncIterator[tuple[Any, WriteAsync]]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:

        async def write(event_id: UUID) -> None:
            await connection.execute(WRITE, (event_id, "written"))

        yield connection, write


@asynccontextmanager
async def of_sqlalchemy_async(dsn: str) -> AsyncIterator[tuple[Any, WriteAsync]]:
    engine = create_async_engine(sqlalchemy_url(dsn), poolclass=NullPool)
    async with engine.connect() as connection:

        async def write(event_id: UUID) -> None:
            await connection.execute(INSERT, {"event_id": event_id})

        yield connection, write
        await connection.commit()


@asynccontextmanager
async def of_session_async(dsn: str) -> AsyncIterator[tuple[Any, WriteAsync]]:
    engine = create_async_engine(sqlalchemy_url(dsn), poolclass=NullPool)
    async with AsyncSession(engine) as session, session.begin():

        async def write(event_id: UUID) -> None:
            await session.execute(INSERT, {"event_id": event_id})

        yield session, write


def _ignored(result: object) -> None: ...


SYNC = (
    of_psycopg,
    of_psycopg_autocommit,
    of_sqlalchemy,
    of_sqlalchemy_commit,
    of_session,
    of_django,
)
ASYNC = (of_psycopg_async, of_sqlalchemy_async, of_session_async)
