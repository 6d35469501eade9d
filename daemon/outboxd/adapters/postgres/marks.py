"""The statements around a handler's transaction, and what their results mean."""

from collections.abc import Sequence
from typing import Any, Protocol
from uuid import UUID

import msgspec
import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from outboxd.adapters.postgres.sessions import statement
from outboxd.core.judging import Away, Busy, Ending, Raised, Returned, TimedOut, describe
from outboxd.core.outcomes import DeadLetter, DeadReason, Done

DUPLICATE = Returned(Done(duplicate=True))

_BEGIN = """
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    -- How long a copy of the event waits for the one in other hands, before it is put back.
    SET LOCAL lock_timeout = '2s';
    INSERT INTO {schema}.processed_events (event_id, handler)
    VALUES (%(event_id)s, %(handler)s)
        ON CONFLICT DO NOTHING
        RETURNING xmin::text;
    -- The handler's own waits are its own affair.
    SET LOCAL lock_timeout TO DEFAULT
"""
INSERTED = 2
"""Position of the INSERT's result among those of BEGIN."""

# Sorted, so that of two batches with common events one waits for the other and not both.
_BEGIN_BATCH = """
    BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
    SET LOCAL lock_timeout = '2s';
    INSERT INTO {schema}.processed_events (event_id, handler)
    SELECT event_id, %(handler)s FROM unnest(%(event_ids)s::uuid[]) AS event_id ORDER BY event_id
        ON CONFLICT DO NOTHING
        RETURNING xmin::text, event_id;
    SET LOCAL lock_timeout TO DEFAULT
"""

_COMMIT = """
    SELECT 1 / (coalesce(pg_current_xact_id_if_assigned()::xid::text, '') = %(xid)s)::int;
    COMMIT
"""

_UNDO = """
    ROLLBACK;
    SELECT 1 FROM {schema}.processed_events
     WHERE event_id = %(event_id)s AND handler = %(handler)s AND xmin::text = %(xid)s
"""
_UNDO_BATCH = """
    ROLLBACK;
    SELECT 1 FROM {schema}.processed_events
     WHERE event_id = ANY (%(event_ids)s::uuid[]) AND handler = %(handler)s
       AND xmin::text = %(xid)s
     LIMIT 1
"""
LEFT_OVER = 1
"""Position of the SELECT's result among those of UNDO."""

_EXISTS = """
    SELECT 1 FROM {schema}.processed_events
     WHERE event_id = %(event_id)s AND handler = %(handler)s
"""

_MARK = """
    INSERT INTO {schema}.processed_events (event_id, handler)
    VALUES (%(event_id)s, %(handler)s)
        ON CONFLICT DO NOTHING
"""

OWN_FAULTS = frozenset({"25P03", "25P04", "57P05"})
"""The server hung up because the handler kept its transaction idle, or open, for too long
(idle_in_transaction_session_timeout, transaction_timeout, idle_session_timeout)."""

_HANDLER_ENDED_IT = "handler {} ended its transaction itself, with a COMMIT or ROLLBACK"

AnyConnection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]


class Bracket(Protocol):
    """The SQL around a transaction of one schema; each text is one round trip, however many
    statements it has.

    `commit` divides by zero, and so commits nothing, if the handler has ended the transaction of
    the mark and begun another. `undo` finds the mark if that ending was a COMMIT.
    """

    begin: bytes
    commit: bytes
    undo: bytes


class Statements:
    """The Bracket around the mark of one event, and what is asked of one mark besides."""

    def __init__(self, schema: str) -> None:
        self.begin = statement(_BEGIN, schema)
        self.commit = statement(_COMMIT, schema)
        self.undo = statement(_UNDO, schema)
        self.exists = statement(_EXISTS, schema)
        self.mark = statement(_MARK, schema)


class BatchStatements:
    """The Bracket around the marks of many events."""

    def __init__(self, schema: str) -> None:
        self.begin = statement(_BEGIN_BATCH, schema)
        self.commit = statement(_COMMIT, schema)
        self.undo = statement(_UNDO_BATCH, schema)


class Mark(msgspec.Struct, frozen=True):
    """The row that says which handler has done which event; `xid` is the transaction's number."""

    event_id: UUID
    handler: str
    xid: str = ""

    def parameters(self) -> dict[str, object]:
        """For every statement of Statements."""
        return {"event_id": self.event_id, "handler": self.handler, "xid": self.xid}

    def inserted(self, rows: Sequence[Sequence[Any]]) -> "Mark | None":
        """The mark with its transaction, by what `begin` has returned; None if it was there."""
        return Mark(self.event_id, self.handler, rows[0][0]) if rows else None


class BatchMarks(msgspec.Struct, frozen=True):
    """The same for many events at once, each of them named once."""

    event_ids: frozenset[UUID]
    handler: str
    xid: str = ""

    def parameters(self) -> dict[str, object]:
        """For every statement of BatchStatements."""
        return {"event_ids": sorted(self.event_ids), "handler": self.handler, "xid": self.xid}

    def inserted(self, rows: Sequence[Sequence[Any]]) -> "BatchMarks | None":
        """Those marks that were not there before; None if all were."""
        if not rows:
            return None
        return BatchMarks(frozenset(event_id for _, event_id in rows), self.handler, rows[0][0])


def unmarked(error: psycopg.Error) -> Ending:
    """Why there is no mark; the handler has not been called."""
    if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected):
        return Busy()
    return Away(describe(error))


def objection(connection: AnyConnection, handler: str, ending: Ending) -> Ending | None:
    """What stands against a commit after the handler has ended; None if nothing does."""
    if connection.closed:
        return _without_connection(ending)
    if not (isinstance(ending, Returned) and isinstance(ending.outcome, Done)):
        return ending
    match connection.info.transaction_status:
        case TransactionStatus.INTRANS:
            return None
        case TransactionStatus.INERROR:
            return Raised(
                f"handler {handler} caught a database error and went on; the transaction is lost: "
                "let the exception out, or put what may fail into `with tx.transaction()`"
            )
        case TransactionStatus.IDLE:
            return Raised(_HANDLER_ENDED_IT.format(handler))
        case _:
            return Raised(f"handler {handler} returned in the middle of a statement")


def uncommitted(connection: AnyConnection, handler: str, error: psycopg.Error) -> Ending:
    """Why the COMMIT failed."""
    if error.sqlstate in OWN_FAULTS:  # the server hung up long ago; it only shows now
        return Raised(describe(error), error.sqlstate)
    if connection.closed:
        # Nobody knows whether it did: the next delivery finds the mark, or does not.
        return Away(f"connection lost during COMMIT: {describe(error)}")
    if connection.info.transaction_status is TransactionStatus.INERROR:
        return Raised(_HANDLER_ENDED_IT.format(handler))
    return Raised(describe(error), error.sqlstate)


def undoable(connection: AnyConnection) -> bool:
    """Whether the connection can still take a ROLLBACK; the server does it when it is closed."""
    return not connection.closed and connection.info.transaction_status in (
        TransactionStatus.INTRANS,
        TransactionStatus.INERROR,
        TransactionStatus.IDLE,
    )


def left_over(handler: str) -> Ending:
    """The mark is committed, but its handler has not succeeded. Another call would take it for a
    duplicate, so it is for a person to see what is missing."""
    text = f"{_HANDLER_ENDED_IT.format(handler)}; part of its effect may be missing"
    return Returned(DeadLetter(DeadReason.REJECTED, text))


def _without_connection(ending: Ending) -> Ending:
    match ending:
        case TimedOut():
            return ending
        case Raised(sqlstate=sqlstate) if sqlstate in OWN_FAULTS:
            return ending
        case Raised(error=error):
            return Away(f"connection lost while the handler ran: {error}")
        case _:
            return Away("connection lost while the handler ran")
