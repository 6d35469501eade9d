"""Connections of the daemon's own loops: autocommit, bounded in time, replaced after a failure."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, LiteralString, TypeAlias

import anyio
import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.redaction import without_secrets
from outboxd.core.retry import Backoff, Dice
from outboxd.core.settings import DatabaseSettings

Parameters: TypeAlias = Mapping[str, Any]

SERVER_LIMITS = {"statement_timeout": "5s", "lock_timeout": "2s"}
"""None for an idle transaction: what is sent in one message with its COMMIT cannot be idle."""

ANSWER_SECONDS = 10.0
"""Above the server's own limit: for a server that is frozen, and a pooler without a free one."""

KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

RECONNECT = Backoff(first_seconds=1.0, factor=1.5, cap_seconds=4.0, jitter=0.25)
"""Between two attempts of the whole process, however many loops want a connection."""

_OUTAGES: tuple[tuple[type[psycopg.Error], OutageKind], ...] = (
    (psycopg.errors.InvalidAuthorizationSpecification, OutageKind.CREDENTIALS),
    (psycopg.errors.InvalidPassword, OutageKind.CREDENTIALS),
    (psycopg.errors.InsufficientPrivilege, OutageKind.DENIED),
    (psycopg.errors.UndefinedTable, OutageKind.MISSING),
    (psycopg.errors.InvalidSchemaName, OutageKind.MISSING),
    (psycopg.errors.QueryCanceled, OutageKind.TIMEOUT),
    (psycopg.errors.LockNotAvailable, OutageKind.TIMEOUT),
    # A server that has become a standby: the next connection may find the new primary.
    (psycopg.errors.ReadOnlySqlTransaction, OutageKind.SERVER_FAULT),
    (psycopg.OperationalError, OutageKind.UNREACHABLE),
    (psycopg.InterfaceError, OutageKind.UNREACHABLE),
    (psycopg.InternalError, OutageKind.SERVER_FAULT),
)

_ANSWERS = (
    psycopg.errors.QueryCanceled,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.UndefinedTable,
    psycopg.errors.InvalidSchemaName,
)
"""Outages in which the server answers: another connection would hear the same."""


def outage_kind(error: psycopg.Error) -> OutageKind | None:
    """Why the database cannot be used now; None when the statement itself is to blame."""
    for kind_of_error, kind in _OUTAGES:
        if isinstance(error, kind_of_error):
            return kind
    return None


def statement(text: LiteralString, schema: str) -> bytes:
    """A statement whose `{schema}` is the quoted schema. Tables are named in full, so that neither
    a pooler that drops the search path nor a table of the same name elsewhere can mislead it."""
    return sql.SQL(text).format(schema=sql.Identifier(schema)).as_bytes(None)


def array(numbers: Iterable[int]) -> str:
    """Integers as the text of a PostgreSQL array: ten times faster than having psycopg look at
    each of them."""
    return "{" + ",".join(map(str, numbers)) + "}"


def conninfo(database: DatabaseSettings, application_name: str) -> str:
    """The connection string of the configuration, with our timeouts of the connection itself."""
    return make_conninfo(
        database.url,
        application_name=application_name,
        connect_timeout=max(2, round(database.connect_timeout_seconds)),
        **KEEPALIVE,
    )


class Limits:
    """The limits and the search path of a statement, sent before it and in the same message.

    The server runs several statements in one message as one transaction, so SET LOCAL holds for
    just this one, whatever server a transaction pooler has picked. The alternatives failed behind
    PgBouncer: it refuses the start option `options` or, told to ignore it, drops the limits without
    a word; a SET stays with a server connection that is somebody else's next; and limits of the
    role would be those of handlers too. It costs no more than the protocol of one statement: both
    are one round trip (measured: 250 µs either way).
    """

    def __init__(self, schema: str) -> None:
        given = {"search_path": schema, **SERVER_LIMITS}
        settings = [f"SET LOCAL {name} = {sql.quote(value)};" for name, value in given.items()]
        self._prefix = " ".join(settings).replace("%", "%%").encode() + b"\n"
        self.results = len(settings)
        """How many results come before that of the statement itself."""

    def before(self, query: bytes) -> bytes:
        """The message, for a cursor that puts parameters in by itself (ClientCursor): the server
        takes parameters of one statement only."""
        return self._prefix + query


class Sessions:
    """Opens connections, one attempt at a time, and well under one a second while they fail.

    Autocommit: each statement is a transaction of its own, so none is ever open across anything.
    Without prepared statements: a transaction pooler gives each statement another server.
    """

    def __init__(
        self, database: DatabaseSettings, application_name: str, dice: Dice = random.random
    ) -> None:
        self._url = database.url
        self.limits = Limits(database.schema)
        self._conninfo = conninfo(database, application_name)
        self._dice = dice
        self._turn = anyio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._opened: list[Session] = []

    def session(self) -> "Session":
        """A session; it connects at its first statement."""
        session = Session(self)
        self._opened.append(session)
        return session

    async def connect(self) -> AsyncConnection[TupleRow]:
        """A new connection. Waits for its turn first; raises Unavailable."""
        async with self._turn:
            await anyio.sleep(max(0.0, self._not_before - boottime()))
            try:
                return await AsyncConnection.connect(
                    self._conninfo, autocommit=True, prepare_threshold=None
                )
            except psycopg.Error as error:
                raise self.failed(error) from error

    def worked(self) -> None:
        """A statement was answered. A connection alone proves nothing: a pooler in front of a dead
        server accepts it and then hangs up."""
        self._failures = 0

    def failed(self, error: psycopg.Error) -> Unavailable:
        """A connection or its attempt is lost: the error as one of ours, without secrets. The loops
        that lose theirs in the same moment count as one failure."""
        now = boottime()
        if now >= self._not_before:
            self._failures += 1
            self._not_before = now + RECONNECT.delay(self._failures, self._dice)
        return self.unavailable(error)

    def unavailable(self, error: psycopg.Error) -> Unavailable:
        """The error as one of ours, without secrets."""
        kind = outage_kind(error) or OutageKind.OTHER
        return Unavailable(f"PostgreSQL: {without_secrets(str(error), self._url).strip()}", kind)

    async def close(self) -> None:
        """Close every session."""
        for session in self._opened:
            await session.close()


class Session:
    """One connection, and one statement at a time."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._turn = anyio.Lock()
        self._connection: AsyncConnection[TupleRow] | None = None

    async def rows(self, query: bytes, parameters: Parameters) -> list[TupleRow]:
        """What the one statement of the query returns. Raises Unavailable, or psycopg.Error when it
        is to blame."""
        cursor = await self._execute(query, parameters)
        return await cursor.fetchall()

    async def run(self, query: bytes, parameters: Parameters) -> int:
        """How many rows the statement has changed. Raises as `rows` does."""
        return (await self._execute(query, parameters)).rowcount

    async def close(self) -> None:
        """Hang up; the next statement connects anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _execute(self, query: bytes, parameters: Parameters) -> psycopg.AsyncCursor[TupleRow]:
        async with self._turn:
            if self._connection is None:
                self._connection = await self._sessions.connect()
            try:
                with anyio.fail_after(ANSWER_SECONDS):
                    cursor = await self._limited(self._connection, query, parameters)
            except TimeoutError as error:
                await self.close()
                silence = psycopg.OperationalError(f"no answer within {ANSWER_SECONDS:g} s")
                raise self._sessions.failed(silence) from error
            except psycopg.Error as error:
                raise await self._judged(error) from error
            except BaseException:
                # Cancelled: the statement may still run, so the connection is of no more use.
                await self.close()
                raise
        self._sessions.worked()
        return cursor

    async def _limited(
        self, connection: AsyncConnection[TupleRow], query: bytes, parameters: Parameters
    ) -> psycopg.AsyncCursor[TupleRow]:
        limits = self._sessions.limits
        cursor = psycopg.AsyncClientCursor(connection)
        await cursor.execute(limits.before(query), parameters)
        for _ in range(limits.results):
            cursor.nextset()
        return cursor

    async def _judged(self, error: psycopg.Error) -> Exception:
        if outage_kind(error) is None:
            return error
        if isinstance(error, _ANSWERS):
            return self._sessions.unavailable(error)
        await self.close()
        return self._sessions.failed(error)
