"""Marks that handlers make in transactions of their own: `context.claim` of inbox = "own"."""

from collections.abc import Generator
from enum import Enum, auto
from typing import Any

import psycopg
from psycopg import errors
from psycopg.rows import TupleRow, tuple_row

from outboxd.adapters.postgres.marks import Mark
from outboxd.adapters.postgres.sessions import statement
from outboxd.core.errors import OutboxdError
from outboxd.raw_connections import (
    AnyConnection,
    commits_by_itself,
    is_asynchronous,
    raw_async_connection,
    raw_connection,
)

# The transaction is the handler's: its own lock_timeout, of whatever origin, is back afterwards.
_CLAIM = """
    SELECT set_config('outboxd.lock_timeout', current_setting('lock_timeout'), true);
    -- How long a copy of the event waits for the one in other hands, before it is put back.
    SET LOCAL lock_timeout = '2s';
    INSERT INTO {schema}.processed_events (event_id, handler)
    VALUES (%(event_id)s, %(handler)s)
        ON CONFLICT DO NOTHING
        RETURNING true;
    SELECT set_config('lock_timeout', current_setting('outboxd.lock_timeout'), true),
           pg_current_xact_id_if_assigned()::text
"""
_INSERTED = 2
"""Position of the INSERT's result."""


_CONTENDED = (
    errors.LockNotAvailable,
    errors.DeadlockDetected,
    errors.SerializationFailure,  # the copy's commit is newer than this transaction's snapshot
)


class ClaimedElsewhere(OutboxdError):
    """A copy of the event is in work; let this error out of the handler, and it is called later."""


class ClaimState(Enum):
    """What a handler knows of its event by its last claim."""

    NEVER_ASKED = auto()
    NEW = auto()
    DONE_BEFORE = auto()
    ELSEWHERE = auto()


class Claims:
    """The claims of one schema's marks."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._sql = statement(_CLAIM, schema)

    def claiming(self, mark: Mark) -> "Claiming":
        """For one call of one handler."""
        return Claiming(mark, self._sql, self._schema)


class Claiming:
    """The claims of one call, and what came of them."""

    def __init__(self, mark: Mark, sql: bytes, schema: str) -> None:
        self.mark = mark
        self.state = ClaimState.NEVER_ASKED
        self._sql = sql
        self._schema = schema
        self._xid: str | None = None
        self._connection: AnyConnection | None = None

    def claim(self, connection: Any) -> Any:
        """`ports.handling.Context.claim`."""
        if is_asynchronous(connection):
            return _Pending(self, connection)
        raw = raw_connection(connection)
        self._check(raw)
        cursor = psycopg.ClientCursor(raw, row_factory=tuple_row)
        try:
            cursor.execute(self._sql, self.mark.parameters())
        except psycopg.Error as error:
            if (told := self._told(error)) is not None:
                raise told from error
            raise
        for _ in range(_INSERTED):
            cursor.nextset()
        inserted = cursor.fetchone() is not None
        cursor.nextset()
        return self._answer(inserted, cursor.fetchone())

    async def claim_async(self, connection: Any) -> bool:
        """The same for an asynchronous connection."""
        raw = await raw_async_connection(connection)
        self._check(raw)
        cursor = psycopg.AsyncClientCursor(raw, row_factory=tuple_row)
        try:
            await cursor.execute(self._sql, self.mark.parameters())
        except psycopg.Error as error:
            if (told := self._told(error)) is not None:
                raise told from error
            raise
        for _ in range(_INSERTED):
            cursor.nextset()
        inserted = await cursor.fetchone() is not None
        cursor.nextset()
        return self._answer(inserted, await cursor.fetchone())

    def connection_lost(self) -> bool:
        """Whether the server, or the way to it, ended the handler's connection."""
        return self._connection is not None and self._connection.broken

    def _check(self, connection: AnyConnection) -> None:
        # One that was dead before is no loss of now, or who keeps it would never be to blame.
        self._connection = None if connection.closed else connection
        if commits_by_itself(connection):
            raise OutboxdError(
                f"handler {self.mark.handler} claims its event on a connection in autocommit mode "
                "and outside of any transaction, so the mark would stay even if the effect does "
                "not; claim within the transaction of the effect: `with engine.begin()`, "
                "`with transaction.atomic()`, `with connection.transaction()`"
            )

    def _answer(self, inserted: bool, row: TupleRow | None) -> bool:
        assert row is not None
        xid = row[1]
        if inserted:
            self._xid = xid
        # Claimed twice in one transaction, the row in the way is this call's own.
        new = inserted or (xid is not None and xid == self._xid)
        self.state = ClaimState.NEW if new else ClaimState.DONE_BEFORE
        return new

    def _told(self, error: psycopg.Error) -> OutboxdError | None:
        """The error as one of ours, if we know more about it."""
        if isinstance(error, _CONTENDED):
            self.state = ClaimState.ELSEWHERE
            return ClaimedElsewhere(
                f"a copy of event {self.mark.event_id} is in the hands of {self.mark.handler} "
                "elsewhere; outboxd calls the handler again later"
            )
        if isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName):
            return OutboxdError(
                f"no table {self._schema}.processed_events in the database of this connection; a "
                "handler can claim events only in the database that [database] url leads to"
            )
        return None


class _Pending:
    # No coroutine: one that is never awaited would warn only when it is collected.
    def __init__(self, claiming: Claiming, connection: Any) -> None:
        self._claiming = claiming
        self._connection = connection

    def __await__(self) -> Generator[Any, None, bool]:
        return self._claiming.claim_async(self._connection).__await__()

    def __bool__(self) -> bool:
        # `if not context.claim(session)` would take every event for new.
        raise TypeError("with an asynchronous connection write `await context.claim(...)`")
