"""The inbox's memory of failures and marks, one autocommit statement for each question."""

from collections.abc import Mapping, Sequence, Set
from typing import Any
from uuid import UUID

import anyio
import psycopg

from outboxd.adapters.postgres.left_over import LeftOver
from outboxd.adapters.postgres.marks import Mark, Statements
from outboxd.adapters.postgres.pools import AsyncConnections, Connections, Database
from outboxd.adapters.postgres.sessions import statement
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.judging import clean
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter, DeadReason
from outboxd.ports.inbox import Standing

ANSWER_SECONDS = 10.0
"""For a server that is frozen; none of the statements waits for anything."""

STANDINGS = """
    SELECT handler, attempts, last_error,
           dead_at IS NOT NULL AND message_id = %(message_id)s AS dead,
           dead_at IS NOT NULL AND message_id <> %(message_id)s AS over, false AS done
      FROM {schema}.handler_failures
     WHERE event_id = %(event_id)s AND handler = ANY (%(handlers)s)
    UNION ALL
    SELECT handler, 0, NULL, false, false, true
      FROM {schema}.processed_events
     WHERE event_id = %(event_id)s AND handler = ANY (%(handlers)s)
"""

TRIED = """
    SELECT event_id, message_id, dead_at IS NOT NULL
      FROM {schema}.handler_failures
     WHERE event_id = ANY (%(event_ids)s) AND handler = %(handler)s
"""

# A new message continues the count unless the old one's story has ended: two copies of one event
# under way at the same time would otherwise set each other's count back, and fail for ever.
FAILED = """
    INSERT INTO {schema}.handler_failures AS failure
           (event_id, handler, message_id, attempts, last_error)
    VALUES (%(event_id)s, %(handler)s, %(message_id)s, 1, %(error)s)
        ON CONFLICT (event_id, handler) DO UPDATE
       SET attempts = CASE WHEN failure.message_id <> excluded.message_id
                            AND failure.dead_at IS NOT NULL
                           THEN 1 ELSE failure.attempts + 1 END,
           dead_at = NULL,
           message_id = excluded.message_id,
           last_error = excluded.last_error,
           last_failed_at = clock_timestamp()
    RETURNING attempts
"""

NOTED = """
    INSERT INTO {schema}.handler_failures AS failure
           (event_id, handler, message_id, attempts, last_error)
    VALUES (%(event_id)s, %(handler)s, %(message_id)s, 0, %(error)s)
        ON CONFLICT (event_id, handler) DO UPDATE
       SET last_error = excluded.last_error, last_failed_at = clock_timestamp()
     WHERE failure.dead_at IS NULL
"""

DEAD = """
    UPDATE {schema}.handler_failures
       SET dead_at = clock_timestamp(), last_error = %(error)s
     WHERE event_id = %(event_id)s AND handler = %(handler)s AND message_id = %(message_id)s
"""

# What a standby in recovery, and tables that were never migrated, would answer to later.
PING = """
    SELECT current_setting('transaction_read_only') = 'off'
      FROM (SELECT count(*) FROM (SELECT FROM {schema}.processed_events LIMIT 1) AS marks) AS one,
           (SELECT count(*) FROM (SELECT FROM {schema}.handler_failures LIMIT 1) AS rows) AS two
"""


class PostgresInbox:
    """Keeps `ports.inbox.Inbox`, and the marks of the inbox mode `after`."""

    remembers = True

    def __init__(
        self, database: Database, connections: AsyncConnections, threads: Connections | None = None
    ) -> None:
        self._database = database
        self._connections = connections
        self._threads = threads
        self.left_over = LeftOver()
        self._standings = statement(STANDINGS, database.schema)
        self._tried = statement(TRIED, database.schema)
        self._failed = statement(FAILED, database.schema)
        self._noted = statement(NOTED, database.schema)
        self._dead = statement(DEAD, database.schema)
        self._ping = statement(PING, database.schema)
        self._marks = Statements(database.schema)

    async def standings(
        self, event_id: UUID, message: ReceivedMessage, handlers: Sequence[str]
    ) -> Mapping[str, Standing]:
        parameters = {
            "event_id": event_id,
            "message_id": message.message_id,
            "handlers": list(handlers),
        }
        standings: dict[str, Standing] = {}
        for handler, attempts, error, dead, over, done in await self._rows(
            self._standings, parameters
        ):
            if done:
                if (handler, event_id) in self.left_over:
                    continue
                # A failure before the success, in another row, is history.
                standings[handler] = Standing(done=True)
            elif dead:
                standings.setdefault(handler, Standing(attempts, dead=_read(error)))
            elif not over:
                standings.setdefault(handler, Standing(attempts))
        return standings

    async def tried(
        self, handler: str, deliveries: Sequence[tuple[UUID, ReceivedMessage]]
    ) -> Set[UUID]:
        event_ids = list({event_id for event_id, _ in deliveries})
        rows = await self._rows(self._tried, {"event_ids": event_ids, "handler": handler})
        failures = {event_id: (message_id, dead) for event_id, message_id, dead in rows}
        return {
            event_id
            for event_id, message in deliveries
            if event_id in failures and not _over(message, *failures[event_id])
        }

    async def failed(
        self, event_id: UUID, message: ReceivedMessage, handler: str, error: str
    ) -> int:
        parameters = {**_key(event_id, message, handler), "error": clean(error)}
        rows = await self._rows(self._failed, parameters)
        return int(rows[0][0])

    async def noted(
        self, event_id: UUID, message: ReceivedMessage, handler: str, error: str
    ) -> None:
        parameters = {**_key(event_id, message, handler), "error": clean(error)}
        await self._run(self._noted, parameters)

    async def dead(
        self, event_id: UUID, message: ReceivedMessage, handler: str, letter: DeadLetter
    ) -> None:
        parameters = {**_key(event_id, message, handler), "error": _write(letter)}
        await self._run(self._dead, parameters)

    async def ping(self) -> None:
        await self._connections.forget_idle()
        if self._threads is not None:
            self._threads.forget_idle()
        rows = await self._rows(self._ping, {})
        if rows != [(True,)]:
            raise Unavailable("PostgreSQL: this server is read-only", OutageKind.SERVER_FAULT)

    async def done(self, mark: Mark) -> bool:
        """Whether the handler has done the event. Raises Unavailable."""
        return bool(await self._rows(self._marks.exists, mark.parameters()))

    async def mark(self, mark: Mark) -> None:
        """The handler has done the event. Raises Unavailable."""
        await self._run(self._marks.mark, mark.parameters())

    async def _rows(self, query: bytes, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        cursor = await self._run(query, parameters)
        return await cursor.fetchall()

    async def _run(
        self, query: bytes, parameters: dict[str, Any]
    ) -> psycopg.AsyncCursor[tuple[Any, ...]]:
        async with self._connections.connection() as connection:
            try:
                with anyio.fail_after(ANSWER_SECONDS):
                    return await connection.execute(query, parameters)
            except psycopg.Error as error:
                raise self._database.unavailable(error) from error
            except TimeoutError as error:
                await connection.hang_up()
                text = f"PostgreSQL: no answer within {ANSWER_SECONDS:g} s"
                raise Unavailable(text, OutageKind.TIMEOUT) from error


def _over(message: ReceivedMessage, message_id: str, dead: bool) -> bool:
    """Whether those failures are of another message, whose story has ended."""
    return dead and message_id != message.message_id


def _key(event_id: UUID, message: ReceivedMessage, handler: str) -> dict[str, Any]:
    return {"event_id": event_id, "handler": handler, "message_id": message.message_id}


def _write(letter: DeadLetter) -> str:
    """The reason stands before the error, so that the next delivery's letter can name it."""
    return clean(f"{letter.reason.value}: {letter.error}")


def _read(text: str | None) -> DeadLetter:
    reason, _, error = (text or "").partition(": ")
    try:
        return DeadLetter(DeadReason(reason), error)
    except ValueError:  # written by an operator, or by another version
        return DeadLetter(DeadReason.MAX_ATTEMPTS, text or "")
