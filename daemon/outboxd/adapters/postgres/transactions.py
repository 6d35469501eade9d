"""A handler within its inbox transaction: mark first, then its effect, then one commit.

The mark comes first so that of concurrent copies of one event all but one wait, or give up.
"""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import anyio
import psycopg
from psycopg.rows import TupleRow

from outboxd.adapters.postgres.marks import (
    DUPLICATE,
    INSERTED,
    LEFT_OVER,
    Mark,
    Statements,
    left_over,
    objection,
    uncommitted,
    undoable,
    unmarked,
)
from outboxd.adapters.postgres.pools import (
    AsyncConnections,
    AsyncHandlerConnection,
    Connections,
    HandlerConnection,
)
from outboxd.core.errors import Unavailable
from outboxd.core.judging import Away, Ending

ANSWER_SECONDS = 10.0
"""For a server that is frozen: statements of ours that wait for anything wait for less."""

Invoke = Callable[[psycopg.Connection[Any]], Ending]
InvokeAsync = Callable[[psycopg.AsyncConnection[Any]], Awaitable[Ending]]


class Transactions:
    """For synchronous handlers: the whole transaction runs in the caller's thread."""

    def __init__(self, connections: Connections, schema: str) -> None:
        self._connections = connections
        self._sql = Statements(schema)

    def run(self, event_id: UUID, handler: str, invoke: Invoke) -> Ending:
        """Call `invoke` with the transaction's connection, unless the event is marked already, and
        commit if it ends in Done. Whatever the database does is told by the ending."""
        try:
            with self._connections.connection() as connection:
                return self._within(connection, Mark(event_id, handler), invoke)
        except Unavailable as error:
            return Away(str(error))

    def _within(self, connection: HandlerConnection, mark: Mark, invoke: Invoke) -> Ending:
        try:
            begun = self._begin(connection, mark)
        except psycopg.Error as error:
            return self._undo(connection, mark, unmarked(error))
        if begun is None:
            return self._undo(connection, mark, DUPLICATE)
        ending = invoke(connection)
        against = objection(connection, mark.handler, ending)
        if against is None:
            against = self._commit(connection, begun)
        return ending if against is None else self._undo(connection, begun, against)

    def _begin(self, connection: HandlerConnection, mark: Mark) -> Mark | None:
        """The mark with its transaction; None if it is there already."""
        cursor = psycopg.ClientCursor(connection)
        cursor.execute(self._sql.begin, mark.parameters())
        for _ in range(INSERTED):
            cursor.nextset()
        row = cursor.fetchone()
        return None if row is None else Mark(mark.event_id, mark.handler, row[0])

    def _commit(self, connection: HandlerConnection, mark: Mark) -> Ending | None:
        try:
            psycopg.ClientCursor(connection).execute(self._sql.commit, mark.parameters())
        except psycopg.Error as error:
            return uncommitted(connection, mark.handler, error)
        return None

    def _undo(self, connection: HandlerConnection, mark: Mark, ending: Ending) -> Ending:
        if not undoable(connection):
            return ending
        try:
            cursor = psycopg.ClientCursor(connection)
            cursor.execute(self._sql.undo, mark.parameters())
            for _ in range(LEFT_OVER):
                cursor.nextset()
            return ending if cursor.fetchone() is None else left_over(mark.handler)
        except psycopg.Error:
            return ending


class AsyncTransactions:
    """For asynchronous handlers: the same in the event loop. When cancelled the connection is hung
    up, and the server rolls back."""

    def __init__(self, connections: AsyncConnections, schema: str) -> None:
        self._connections = connections
        self._sql = Statements(schema)

    async def run(self, event_id: UUID, handler: str, invoke: InvokeAsync) -> Ending:
        """As Transactions.run."""
        try:
            async with self._connections.connection() as connection:
                return await self._within(connection, Mark(event_id, handler), invoke)
        except Unavailable as error:
            return Away(str(error))

    async def _within(
        self, connection: AsyncHandlerConnection, mark: Mark, invoke: InvokeAsync
    ) -> Ending:
        try:
            begun = await self._begin(connection, mark)
        except psycopg.Error as error:
            return await self._undo(connection, mark, unmarked(error))
        if begun is None:
            return await self._undo(connection, mark, DUPLICATE)
        ending = await invoke(connection)
        against = objection(connection, mark.handler, ending)
        if against is None:
            against = await self._commit(connection, begun)
        return ending if against is None else await self._undo(connection, begun, against)

    async def _begin(self, connection: AsyncHandlerConnection, mark: Mark) -> Mark | None:
        cursor = await _answered(connection, self._sql.begin, mark)
        for _ in range(INSERTED):
            cursor.nextset()
        row = await cursor.fetchone()
        return None if row is None else Mark(mark.event_id, mark.handler, row[0])

    async def _commit(self, connection: AsyncHandlerConnection, mark: Mark) -> Ending | None:
        try:
            await _answered(connection, self._sql.commit, mark)
        except psycopg.Error as error:
            return uncommitted(connection, mark.handler, error)
        return None

    async def _undo(self, connection: AsyncHandlerConnection, mark: Mark, ending: Ending) -> Ending:
        if not undoable(connection):
            return ending
        try:
            cursor = await _answered(connection, self._sql.undo, mark)
            for _ in range(LEFT_OVER):
                cursor.nextset()
            return ending if await cursor.fetchone() is None else left_over(mark.handler)
        except psycopg.Error:
            return ending


async def _answered(
    connection: AsyncHandlerConnection, query: bytes, mark: Mark
) -> psycopg.AsyncClientCursor[TupleRow]:
    """The cursor with the answer; without one in time the connection is of no more use."""
    cursor = psycopg.AsyncClientCursor(connection)
    try:
        with anyio.fail_after(ANSWER_SECONDS):
            await cursor.execute(query, mark.parameters())
    except TimeoutError as error:
        await connection.hang_up()
        raise psycopg.OperationalError(f"no answer within {ANSWER_SECONDS:g} s") from error
    return cursor
