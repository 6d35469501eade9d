"""A handler within a transaction with its marks: mark first, then its effect, then one commit.

The marks come first so that of concurrent copies of one event all but one wait, or give up.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import anyio
import psycopg
from psycopg.rows import TupleRow, tuple_row

from outboxd.adapters.postgres.marks import (
    DUPLICATE,
    INSERTED,
    LEFT_OVER,
    Bracket,
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


class Marks(Protocol):
    """One mark or many: `marks.Mark` or `marks.BatchMarks`."""

    @property
    def handler(self) -> str: ...

    def parameters(self) -> dict[str, object]: ...

    def inserted(self, rows: list[TupleRow]) -> Self | None: ...


M = TypeVar("M", bound=Marks)


class Bracketed(NamedTuple, Generic[M]):
    """How it ended. `new` are the marks that were made and, if it ended in Done, committed; None if
    all were there before. `left_over` are those that are committed although it did not."""

    ending: Ending
    new: M | None = None
    left_over: M | None = None


class Brackets(Generic[M]):
    """For synchronous handlers: the whole transaction runs in the caller's thread."""

    def __init__(self, connections: Connections, sql: Bracket) -> None:
        self._connections = connections
        self._sql = sql

    def bracket(
        self, marks: M, invoke: Callable[[psycopg.Connection[Any], M], Ending]
    ) -> Bracketed[M]:
        """Call `invoke` with the transaction's connection and the new marks, unless there is none,
        and commit if it ends in Done. Whatever the database does is told by the ending."""
        try:
            with self._connections.connection() as connection:
                return self._within(connection, marks, invoke)
        except Unavailable as error:
            return Bracketed(Away(str(error)))

    def _within(
        self,
        connection: HandlerConnection,
        marks: M,
        invoke: Callable[[psycopg.Connection[Any], M], Ending],
    ) -> Bracketed[M]:
        try:
            new = self._begin(connection, marks)
        except psycopg.Error as error:
            return self._undo(connection, marks, unmarked(error))
        if new is None:
            return self._undo(connection, marks, DUPLICATE)
        ending = invoke(connection, new)
        against = objection(connection, new.handler, ending)
        if against is None:
            against = self._commit(connection, new)
        return Bracketed(ending, new) if against is None else self._undo(connection, new, against)

    def _begin(self, connection: HandlerConnection, marks: M) -> M | None:
        cursor = psycopg.ClientCursor(connection, row_factory=tuple_row)
        cursor.execute(self._sql.begin, marks.parameters())
        for _ in range(INSERTED):
            cursor.nextset()
        return marks.inserted(cursor.fetchall())

    def _commit(self, connection: HandlerConnection, marks: M) -> Ending | None:
        try:
            psycopg.ClientCursor(connection).execute(self._sql.commit, marks.parameters())
        except psycopg.Error as error:
            return uncommitted(connection, marks.handler, error)
        return None

    def _undo(self, connection: HandlerConnection, marks: M, ending: Ending) -> Bracketed[M]:
        if not undoable(connection):
            return Bracketed(ending)
        try:
            cursor = psycopg.ClientCursor(connection, row_factory=tuple_row)
            cursor.execute(self._sql.undo, marks.parameters())
            for _ in range(LEFT_OVER):
                cursor.nextset()
            found = cursor.fetchone() is not None
        except psycopg.Error:
            return Bracketed(ending)
        return Bracketed(ending, left_over=marks if found else None)


class AsyncBrackets(Generic[M]):
    """For asynchronous handlers: the same in the event loop. When cancelled the connection is hung
    up, and the server rolls back."""

    def __init__(self, connections: AsyncConnections, sql: Bracket) -> None:
        self._connections = connections
        self._sql = sql

    async def bracket(
        self, marks: M, invoke: Callable[[psycopg.AsyncConnection[Any], M], Awaitable[Ending]]
    ) -> Bracketed[M]:
        """As Brackets.bracket."""
        try:
            async with self._connections.connection() as connection:
                return await self._within(connection, marks, invoke)
        except Unavailable as error:
            return Bracketed(Away(str(error)))

    async def _within(
        self,
        connection: AsyncHandlerConnection,
        marks: M,
        invoke: Callable[[psycopg.AsyncConnection[Any], M], Awaitable[Ending]],
    ) -> Bracketed[M]:
        try:
            new = await self._begin(connection, marks)
        except psycopg.Error as error:
            return await self._undo(connection, marks, unmarked(error))
        if new is None:
            return await self._undo(connection, marks, DUPLICATE)
        ending = await invoke(connection, new)
        against = objection(connection, new.handler, ending)
        if against is None:
            against = await self._commit(connection, new)
        if against is None:
            return Bracketed(ending, new)
        return await self._undo(connection, new, against)

    async def _begin(self, connection: AsyncHandlerConnection, marks: M) -> M | None:
        cursor = await _answered(connection, self._sql.begin, marks)
        for _ in range(INSERTED):
            cursor.nextset()
        return marks.inserted(await cursor.fetchall())

    async def _commit(self, connection: AsyncHandlerConnection, marks: M) -> Ending | None:
        try:
            await _answered(connection, self._sql.commit, marks)
        except psycopg.Error as error:
            return uncommitted(connection, marks.handler, error)
        return None

    async def _undo(
        self, connection: AsyncHandlerConnection, marks: M, ending: Ending
    ) -> Bracketed[M]:
        if not undoable(connection):
            return Bracketed(ending)
        try:
            cursor = await _answered(connection, self._sql.undo, marks)
            for _ in range(LEFT_OVER):
                cursor.nextset()
            found = await cursor.fetchone() is not None
        except psycopg.Error:
            return Bracketed(ending)
        return Bracketed(ending, left_over=marks if found else None)


async def _answered(
    connection: AsyncHandlerConnection, query: bytes, marks: Marks
) -> psycopg.AsyncClientCursor[TupleRow]:
    """The cursor with the answer; without one in time the connection is of no more use."""
    cursor = psycopg.AsyncClientCursor(connection, row_factory=tuple_row)
    try:
        with anyio.fail_after(ANSWER_SECONDS):
            await cursor.execute(query, marks.parameters())
    except TimeoutError as error:
        await connection.hang_up()
        raise psycopg.OperationalError(f"no answer within {ANSWER_SECONDS:g} s") from error
    return cursor
