"""Wake-ups by LISTEN and NOTIFY, through a table of sleepers that producers' statements look at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import anyio
import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import TupleRow

from outboxd.adapters.postgres.sessions import ANSWER_SECONDS, Sessions, statement
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.ports.wake_ups import SLEEPER_SECONDS

CHANNEL_LENGTH = 63
"""PostgreSQL's limit. Two schemas with the same first 55 letters wake each other in vain."""

FORGOTTEN_SECONDS = 60.0
"""How long the row of a killed relay stays after producers stopped believing in it."""

ENABLED = """
    SELECT tgenabled IN ('O', 'A')
      FROM pg_catalog.pg_trigger
     WHERE tgname = 'outbox_events_wake_sleepers'
       AND tgrelid = (
            SELECT c.oid
              FROM pg_catalog.pg_class c
              JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = %(schema)s AND c.relname = 'outbox_events'
       )
"""

DECLARE = """
    WITH forgotten AS (
        DELETE FROM {schema}.outbox_sleepers
         WHERE relay <> %(relay)s
           AND asleep_until < clock_timestamp() - %(forgotten)s * interval '1 second'
    ), declared AS (
        INSERT INTO {schema}.outbox_sleepers (relay, asleep_until)
        VALUES (%(relay)s, clock_timestamp() + %(lease)s * interval '1 second')
            ON CONFLICT (relay) DO UPDATE SET asleep_until = excluded.asleep_until
        RETURNING 1
    )
    SELECT pg_notify(%(channel)s, %(relay)s::text) FROM declared
"""

# A statement of its own: the row has to be committed before the number is taken. Taken, and not
# read from a snapshot: pg_snapshot_xmax is one above the highest *ended* transaction, and a
# producer that has looked already may have that number or a higher one.
NEXT_TRANSACTION = "SELECT pg_current_xact_id()::text::bigint"

OLDEST_OPEN = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"

RENEW = """
    WITH renewed AS (
        UPDATE {schema}.outbox_sleepers
           SET asleep_until = clock_timestamp() + %(lease)s * interval '1 second'
         WHERE relay = %(relay)s AND asleep_until > clock_timestamp()
        RETURNING 1
    )
    SELECT pg_notify(%(channel)s, %(relay)s::text) FROM renewed
"""

WITHDRAW = "DELETE FROM {schema}.outbox_sleepers WHERE relay = %(relay)s"


def channel_of(schema: str) -> str:
    """What the trigger of this schema notifies; the migration computes the same."""
    return f"outboxd_{schema}"[:CHANNEL_LENGTH]


class PostgresWakeUps:
    """Statements go through one connection, notifications come through another, which does nothing
    else. So an echo of `declare` has come the way that a producer's notification comes: where
    LISTEN does not work, as behind a transaction pooler, there is none."""

    def __init__(self, sessions: Sessions, listeners: Sessions, schema: str) -> None:
        """`listeners` connect without a transaction pooler in between."""
        self._session = sessions.session()
        self._listeners = listeners
        self._schema = schema
        self._channel = channel_of(schema)
        self._enabled = statement(ENABLED, schema)
        self._declare = statement(DECLARE, schema)
        self._next_transaction = statement(NEXT_TRANSACTION, schema)
        self._oldest_open = statement(OLDEST_OPEN, schema)
        self._renew = statement(RENEW, schema)
        self._withdraw = statement(WITHDRAW, schema)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[str]]:
        if not await self._notified():
            raise Unavailable(
                "producers do not notify; the owner of the tables enables it with ALTER TABLE "
                f"{self._schema}.outbox_events ENABLE TRIGGER outbox_events_wake_sleepers",
                OutageKind.MISSING,
            )
        connection = await self._listeners.connect()
        try:
            await self._listen(connection)
            yield self._notifications(connection)
        finally:
            await connection.close()

    async def declare(self, relay: UUID) -> int:
        await self._session.rows(
            self._declare, {**self._given(relay), "forgotten": FORGOTTEN_SECONDS}
        )
        ((first_to_know,),) = await self._session.rows(self._next_transaction, {})
        return int(first_to_know)

    async def oldest_open(self) -> int:
        ((oldest,),) = await self._session.rows(self._oldest_open, {})
        return int(oldest)

    async def renew(self, relay: UUID) -> bool:
        renewed = await self._session.rows(self._renew, self._given(relay))
        return len(renewed) > 0 and await self._notified()

    async def withdraw(self, relay: UUID) -> None:
        await self._session.run(self._withdraw, {"relay": relay})

    async def _notified(self) -> bool:
        """Whether the trigger is there and enabled."""
        return (True,) in await self._session.rows(self._enabled, {"schema": self._schema})

    def _given(self, relay: UUID) -> dict[str, object]:
        return {"relay": relay, "lease": SLEEPER_SECONDS, "channel": self._channel}

    async def _listen(self, connection: AsyncConnection[TupleRow]) -> None:
        try:
            with anyio.fail_after(ANSWER_SECONDS):
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        except TimeoutError as error:
            silence = psycopg.OperationalError(f"no answer within {ANSWER_SECONDS:g} s")
            raise self._listeners.failed(silence) from error
        except psycopg.Error as error:
            raise self._listeners.failed(error) from error
        self._listeners.worked()

    async def _notifications(self, connection: AsyncConnection[TupleRow]) -> AsyncIterator[str]:
        try:
            async for notification in connection.notifies():
                yield notification.payload
        except psycopg.Error as error:
            raise self._listeners.failed(error) from error
