"""The suspects of one queue in PostgreSQL, where every process of it sees them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import psycopg

from outboxd.adapters.postgres.pools import AsyncConnections, Database
from outboxd.adapters.postgres.sessions import statement
from outboxd.channels.protocol import Suspect
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.messages import ReceivedMessage
from outboxd.ports.suspects import Suspicion

ANSWER_SECONDS = 10.0
"""For a server that is frozen; none of the statements waits for more than a row."""

# Sorted, so that two processes that write down the same messages lock them in the same order.
RECORD = """
    INSERT INTO {schema}.suspects AS known (queue, message_id, crashes_alone, reason, last_death)
    SELECT %(queue)s, message_id, crashes, reason, death
      FROM unnest(%(message_ids)s::text[], %(crashes)s::integer[], %(reasons)s::text[],
                  %(deaths)s::uuid[])
           AS suspect (message_id, crashes, reason, death)
     ORDER BY message_id
        ON CONFLICT (queue, message_id) DO UPDATE
       SET crashes_alone = known.crashes_alone + excluded.crashes_alone,
           reason = excluded.reason,
           last_crash_at = clock_timestamp(),
           last_death = excluded.last_death
     WHERE known.last_death IS DISTINCT FROM excluded.last_death
"""

LOOK_UP = """
    SELECT message_id, crashes_alone, reason
      FROM {schema}.suspects
     WHERE queue = %(queue)s AND message_id = ANY (%(message_ids)s)
"""

CLEAR = """
    DELETE FROM {schema}.suspects
     WHERE queue = %(queue)s AND message_id = ANY (%(message_ids)s)
"""


class PostgresSuspects:
    """Keeps `ports.suspects.Suspects`, one autocommit statement for each question."""

    def __init__(self, database: Database, connections: AsyncConnections, queue: str) -> None:
        """`queue` is the name in the configuration."""
        self._database = database
        self._connections = connections
        self._queue = queue
        self._record = statement(RECORD, database.schema)
        self._look_up = statement(LOOK_UP, database.schema)
        self._clear = statement(CLEAR, database.schema)

    async def record(self, suspects: Sequence[Suspect]) -> None:
        if not suspects:
            return
        # One row for each message, since an upsert takes no row twice. The last death stands for
        # all of them: a pool is not told of another one before it has recorded the first.
        last = {suspect.message_id: suspect for suspect in suspects}
        alone = {(suspect.message_id, suspect.death) for suspect in suspects if suspect.alone}
        crashes = Counter(message_id for message_id, _ in alone)
        await self._ask(
            self._record,
            message_ids=list(last),
            crashes=[crashes[message_id] for message_id in last],
            reasons=[suspect.reason for suspect in last.values()],
            deaths=[suspect.death for suspect in last.values()],
        )

    async def look_up(self, messages: Sequence[ReceivedMessage]) -> Mapping[str, Suspicion]:
        if not messages:
            return {}
        cursor = await self._ask(
            self._look_up, message_ids=[message.message_id for message in messages]
        )
        return {
            message_id: Suspicion(crashes_alone, reason)
            for message_id, crashes_alone, reason in await cursor.fetchall()
        }

    async def cleared(self, message_ids: Sequence[str]) -> None:
        if message_ids:
            await self._ask(self._clear, message_ids=list(message_ids))

    async def _ask(self, query: bytes, **parameters: Any) -> psycopg.AsyncCursor[tuple[Any, ...]]:
        async with self._connections.connection() as connection:
            try:
                with anyio.fail_after(ANSWER_SECONDS):
                    return await connection.execute(query, {"queue": self._queue, **parameters})
            except psycopg.Error as error:
                raise self._database.unavailable(error) from error
            except TimeoutError as error:
                await connection.hang_up()
                text = f"PostgreSQL: no answer within {ANSWER_SECONDS:g} s"
                raise Unavailable(text, OutageKind.TIMEOUT) from error
