"""Connections that a handler with inbox = "own" brings, and which of them are of use."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy
from django.db import connection as django_connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from outboxd import Context, Event, NewEvent, PublishRefused, publish
from outboxd.core.judging import Raised
from tests.adapters.bringers import sqlalchemy_url, use_django
from tests.adapters.handling_scene import DONE, DUPLICATE, Scene, a_scene


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    use_django(database)
    async with a_scene(database) as scene:
        yield scene


async def test_a_claim_that_would_commit_by_itself_is_refused(scene: Scene) -> None:
    engine = sqlalchemy.create_engine(
        sqlalchemy_url(scene.dsn), poolclass=NullPool, isolation_level="AUTOCOMMIT"
    )

    def of_engine(event: Event[Any], context: Context) -> None:
        with engine.connect() as connection:
            context.claim(connection)

    def outside_of_atomic(event: Event[Any], context: Context) -> None:
        try:
            context.claim(django_connection)
        finally:
            django_connection.close()

    async def asynchronous(event: Event[Any], context: Context) -> None:
        connection = await psycopg.AsyncConnection.connect(scene.dsn, autocommit=True)
        async with connection:
            await context.claim(connection)

    for handler in (of_engine, outside_of_atomic, asynchronous):
        ending = await scene.run(handler, inbox="own")
        assert isinstance(ending, Raised)
        assert "in autocommit mode and outside of any transaction" in ending.error
    assert scene.marks == 0


def test_an_event_that_would_be_published_by_itself_is_refused(database: str) -> None:
    use_django(database)
    event = NewEvent("order.paid", "order", "17", {})
    with pytest.raises(PublishRefused, match=r"Django: `transaction\.atomic\(\)`"):
        publish(django_connection, event)
    django_connection.close()


async def test_another_database_than_outboxds_is_found_out(
    scene: Scene, bare_database: str
) -> None:
    def elsewhere(event: Event[Any], context: Context) -> None:
        with psycopg.connect(bare_database) as connection:
            context.claim(connection)

    ending = await scene.run(elsewhere, inbox="own")
    assert isinstance(ending, Raised)
    assert "no table outboxd.processed_events in the database of this connection" in ending.error

    with psycopg.connect(bare_database) as connection:
        connection.execute("CREATE SCHEMA outboxd")
        connection.execute(
            "CREATE TABLE outboxd.processed_events (event_id uuid, handler text, "
            "PRIMARY KEY (event_id, handler))"
        )
    event_id = uuid4()
    for text in ("another database than", "that is not in the database of"):
        ending = await scene.run(elsewhere, event_id, inbox="own")
        assert isinstance(ending, Raised)
        assert text in ending.error


async def test_an_insert_is_all_that_a_claim_needs_the_right_for(scene: Scene) -> None:
    role = f"claims_{uuid4().hex}"

    def claims(event: Event[Any], context: Context) -> None:
        with psycopg.connect(scene.dsn, user=role) as connection:
            context.claim(connection)

    event_id = uuid4()
    with psycopg.connect(scene.dsn, autocommit=True) as owner:
        for statement in (
            f"CREATE ROLE {role} LOGIN",
            f"GRANT USAGE ON SCHEMA outboxd TO {role}",
            f"GRANT INSERT ON outboxd.processed_events TO {role}",
        ):
            owner.execute(statement.encode())
        for ending in (DONE, DUPLICATE):
            assert await scene.run(claims, event_id, inbox="own") == ending
        for statement in (f"DROP OWNED BY {role}", f"DROP ROLE {role}"):
            owner.execute(statement.encode())


async def test_what_cannot_be_claimed_on_is_named(scene: Scene) -> None:
    sqlite = sqlalchemy.create_engine("sqlite://")
    async_engine = create_async_engine(sqlalchemy_url(scene.dsn))

    def of_nothing(event: Event[Any], context: Context) -> None:
        context.claim("postgresql://")

    def of_sqlite(event: Event[Any], context: Context) -> None:
        with sqlite.begin() as connection:
            context.claim(connection)

    async def of_an_engine(event: Event[Any], context: Context) -> None:
        await context.claim(async_engine)

    for handler, text in (
        (of_nothing, "and this is a builtins.str"),
        (of_sqlite, "works over psycopg 3, and this connection's driver is sqlite3.Connection"),
        (of_an_engine, "and this is a sqlalchemy.ext.asyncio.engine.AsyncEngine"),
    ):
        ending = await scene.run(handler, inbox="own")
        assert isinstance(ending, Raised)
        assert text in ending.error
    sqlite.dispose()
