"""Connections that handlers work on: opened when needed, reused, never waited for.

As many are in use as handlers run, and that the pool's concurrency bounds. So there is nothing to
queue for, and no background worker whose own backoff would delay the recovery from an outage
(psycopg_pool's sleeps for up to half a minute after the database is back).
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, NoReturn

import anyio
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row

from outboxd.adapters.postgres.sessions import KEEPALIVE, outage_kind
from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.redaction import without_secrets
from outboxd.core.settings import DatabaseSettings

CANCEL_SECONDS = 1.0

REUSED_SECONDS = 1800.0
"""So that a changed password, address or role reaches every connection within half an hour."""

_NOT_YOURS = "the transaction belongs to outboxd, which commits it when the handler has returned"


class HandlerConnection(psycopg.Connection[TupleRow]):
    """The `tx` of a synchronous handler: all of a connection except the power to end it."""

    opened_at = 0.0

    def commit(self) -> NoReturn:
        raise psycopg.ProgrammingError(f"tx.commit(): {_NOT_YOURS}")

    def rollback(self) -> NoReturn:
        raise psycopg.ProgrammingError(f"tx.rollback(): {_NOT_YOURS}; raise an exception instead")

    def close(self) -> NoReturn:
        raise psycopg.ProgrammingError(f"tx.close(): {_NOT_YOURS}")

    def hang_up(self) -> None:
        """Close for good; the server rolls back."""
        super().close()


class AsyncHandlerConnection(psycopg.AsyncConnection[TupleRow]):
    """The `tx` of an asynchronous handler: all of a connection except the power to end it."""

    opened_at = 0.0

    async def commit(self) -> NoReturn:
        raise psycopg.ProgrammingError(f"tx.commit(): {_NOT_YOURS}")

    async def rollback(self) -> NoReturn:
        raise psycopg.ProgrammingError(f"tx.rollback(): {_NOT_YOURS}; raise an exception instead")

    async def close(self) -> NoReturn:
        raise psycopg.ProgrammingError(f"tx.close(): {_NOT_YOURS}")

    async def cancel_safe(self, *, timeout: float = CANCEL_SECONDS) -> None:
        # psycopg calls this when a statement's task is cancelled: until its end the server would
        # not notice that nobody waits, and keep its locks. But a cancelled scope of anyio cancels
        # whatever is awaited in it again and again, this included.
        with anyio.CancelScope(shield=True):
            await super().cancel_safe(timeout=min(timeout, CANCEL_SECONDS))

    async def hang_up(self) -> None:
        """Close for good; the server rolls back."""
        if not self.closed and self.info.transaction_status is TransactionStatus.ACTIVE:
            with suppress(psycopg.Error):
                await self.cancel_safe()
        await super().close()


class Database:
    """Where PostgreSQL is, and how its errors are told without its password."""

    def __init__(self, settings: DatabaseSettings, application_name: str) -> None:
        self._url = settings.url
        self.schema = settings.schema
        given = conninfo_to_dict(settings.url)
        ours: dict[str, Any] = {
            "application_name": application_name,
            "connect_timeout": max(2, round(settings.connect_timeout_seconds)),
            **KEEPALIVE,
        }
        self.conninfo = make_conninfo(**{**ours, **given})

    def unavailable(self, error: psycopg.Error) -> Unavailable:
        """The error as one of ours."""
        kind = outage_kind(error) or OutageKind.OTHER
        return Unavailable(f"PostgreSQL: {without_secrets(str(error), self._url).strip()}", kind)


class Connections:
    """Connections for worker threads; `list.append` and `list.pop` are atomic."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._idle: list[HandlerConnection] = []
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[HandlerConnection]:
        """A connection outside of any transaction. Raises Unavailable if there is none."""
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def forget_idle(self) -> None:
        """Hang up what is idle: after an outage it is dead, or leads to the wrong server."""
        while self._idle:
            self._idle.pop().hang_up()

    def close(self) -> None:
        """Hang up, now what is idle, later what is in use."""
        self._closed = True
        self.forget_idle()

    def _take(self) -> HandlerConnection:
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            connection = HandlerConnection.connect(
                # A transaction pooler may give the next transaction another server, which knows
                # nothing of statements prepared on this one.
                self._database.conninfo,
                autocommit=True,
                prepare_threshold=None,
            )
        except psycopg.Error as error:
            raise self._database.unavailable(error) from error
        connection.opened_at = boottime()
        return connection

    def _give_back(self, connection: HandlerConnection) -> None:
        if self._closed or not _reusable(connection, connection.opened_at):
            connection.hang_up()
            return
        connection.row_factory = tuple_row
        self._idle.append(connection)


class AsyncConnections:
    """Connections for the event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._idle: list[AsyncHandlerConnection] = []
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncHandlerConnection]:
        """A connection outside of any transaction. Raises Unavailable if there is none."""
        connection = await self._take()
        try:
            yield connection
        finally:
            await self._give_back(connection)

    async def forget_idle(self) -> None:
        """Hang up what is idle: after an outage it is dead, or leads to the wrong server."""
        while self._idle:
            await self._idle.pop().hang_up()

    async def close(self) -> None:
        """Hang up, now what is idle, later what is in use."""
        self._closed = True
        await self.forget_idle()

    async def _take(self) -> AsyncHandlerConnection:
        if self._idle:
            return self._idle.pop()
        try:
            connection = await AsyncHandlerConnection.connect(
                self._database.conninfo, autocommit=True, prepare_threshold=None
            )
        except psycopg.Error as error:
            raise self._database.unavailable(error) from error
        connection.opened_at = boottime()
        return connection

    async def _give_back(self, connection: AsyncHandlerConnection) -> None:
        if self._closed or not _reusable(connection, connection.opened_at):
            await connection.hang_up()
            return
        connection.row_factory = tuple_row
        self._idle.append(connection)


def _reusable(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], opened_at: float
) -> bool:
    idle = connection.info.transaction_status is TransactionStatus.IDLE
    return idle and connection.autocommit and boottime() - opened_at < REUSED_SECONDS
