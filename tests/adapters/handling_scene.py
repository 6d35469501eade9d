"""A real database, and a way to run one handler on events."""

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import psycopg

from outboxd.adapters.handlers import LoadedHandler, Runner
from outboxd.adapters.handlers.inspection import inspect_handler
from outboxd.adapters.postgres.consumer_database import ConsumerDatabase, consumer_database
from outboxd.core.clock import boottime
from outboxd.core.envelopes import Incoming
from outboxd.core.judging import Ending, Returned
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import Done
from outboxd.core.settings import DatabaseSettings, HandlerSettings
from outboxd.ports.handling import BatchEnding, Call
from outboxd.producer import publish

Tx = psycopg.Connection[Any]
AsyncTx = psycopg.AsyncConnection[Any]

DUPLICATE = Returned(Done(duplicate=True))
DONE = Returned(Done())

LEDGER = "CREATE TABLE ledger (event_id uuid, note text)"
WRITE = "INSERT INTO ledger VALUES (%s, %s)"


def loaded(function: Callable[..., Any], name: str = "h", **changes: Any) -> LoadedHandler:
    """A function as a handler, without a configuration file."""
    values = {"event": "*", "handler": "tests:none", "name": name, "inbox": "transaction"}
    settings = HandlerSettings(**{**values, **changes})
    return LoadedHandler(
        settings, function, inspect_handler(function, settings.inbox, settings.batch)
    )


class Scene:
    """A database with an append-only ledger."""

    def __init__(self, dsn: str, database: ConsumerDatabase) -> None:
        self.dsn = dsn
        self.database = database

    def runner(self, function: Callable[..., Any], **changes: Any) -> Runner:
        handler = loaded(function, **changes)
        return Runner([handler], concurrency=4, database=self.database, publish=publish)

    async def run(
        self, function: Callable[..., Any], event_id: UUID | None = None, **changes: Any
    ) -> Ending:
        return await self.runner(function, **changes).run("h", a_call(event_id))

    async def run_batch(
        self, function: Callable[..., Any], event_ids: Sequence[UUID], **changes: Any
    ) -> BatchEnding:
        runner = self.runner(function, **{"batch": 100, **changes})
        return await runner.run_batch("h", [a_call(event_id) for event_id in event_ids])

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    @property
    def ledger(self) -> list[str]:
        return [note for _, note in self.rows("SELECT * FROM ledger")]

    @property
    def effects(self) -> list[UUID]:
        return [event_id for event_id, _ in self.rows("SELECT * FROM ledger")]

    @property
    def marks(self) -> int:
        return len(self.rows("SELECT 1 FROM outboxd.processed_events"))


@asynccontextmanager
async def a_scene(dsn: str) -> AsyncIterator[Scene]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(LEDGER)
    async with consumer_database(DatabaseSettings(url=dsn), "test", "orders") as opened:
        yield Scene(dsn, opened)


def outlive(server_pid: int) -> None:
    """Return once this process of the server is gone. Only then is its last word sure to be read: a
    query that meets its end half-way has the connection reset, and that word lost."""
    give_up_at = time.monotonic() + 20
    while time.monotonic() < give_up_at:
        try:
            os.kill(server_pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.005)
    raise TimeoutError(f"process {server_pid} of the server goes on")


def a_call(event_id: UUID | None = None, payload: bytes = b"{}", seconds: float = 30.0) -> Call:
    incoming = Incoming(
        id=event_id or uuid4(),
        type="order.created",
        aggregate_type="order",
        aggregate_id="17",
        occurred_at=datetime(2024, 5, 1, tzinfo=UTC),
        payload=msgspec.Raw(payload),
    )
    return Call(incoming, "orders", 1, boottime() + seconds)


def a_message(message_id: str = "m1", receive_count: int = 1) -> ReceivedMessage:
    return ReceivedMessage(
        message_id=message_id,
        receipt_handle="r",
        receive_count=receive_count,
        sent_at=0.0,
        body="",
    )
