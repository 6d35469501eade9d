"""Purges the inbox in small steps, and keeps account of when queues were polled."""

from collections import defaultdict
from typing import LiteralString

from outboxd.adapters.postgres.sessions import Parameters, Sessions, statement
from outboxd.core.inbox_retention import FORGOTTEN_SECONDS, OUTAGE_SECONDS, Gap, Polled
from outboxd.ports.inbox_upkeep import Polls

# One statement, so that it is one transaction. Two processes of a queue that notice the end of an
# outage at once write the same gap down: one of them wins.
POLLED: LiteralString = """
    WITH before AS (
        SELECT polled_at FROM {schema}.inbox_polls WHERE queue = %(queue)s::text
    ), gap AS (
        INSERT INTO {schema}.inbox_gaps (queue, started_at, ended_at)
        SELECT %(queue)s::text, polled_at, clock_timestamp()
          FROM before
         WHERE polled_at < clock_timestamp() - %(outage)s * interval '1 second'
            ON CONFLICT DO NOTHING
    )
    INSERT INTO {schema}.inbox_polls AS known (queue, polled_at, lasting_seconds)
    VALUES (%(queue)s::text, clock_timestamp(), %(lasting)s::float8)
        ON CONFLICT (queue) DO UPDATE
       SET polled_at = greatest(known.polled_at, excluded.polled_at),
           lasting_seconds = coalesce(excluded.lasting_seconds, known.lasting_seconds)
"""

POLLS: LiteralString = """
    SELECT queue, extract(epoch FROM polled_at)::float8, lasting_seconds FROM {schema}.inbox_polls
"""

GAPS: LiteralString = """
    SELECT queue, extract(epoch FROM started_at)::float8, extract(epoch FROM ended_at)::float8
      FROM {schema}.inbox_gaps
"""

NOW: LiteralString = "SELECT extract(epoch FROM clock_timestamp())::float8"

# The lock of a transaction, since a pooler may give the next statement another server. By ctid: a
# join by the primary key would look each row up again.
PURGE_MARKS: LiteralString = """
    WITH turn AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(hashtextextended(%(lock)s::text, 0)) AS mine
    ), gone AS (
        DELETE FROM {schema}.processed_events
         WHERE ctid = ANY (ARRAY(
                SELECT old.ctid
                  FROM {schema}.processed_events old
                 WHERE (SELECT mine FROM turn)
                   AND old.processed_at >= to_timestamp(%(since)s)
                   AND old.processed_at < to_timestamp(%(before)s)
                 LIMIT %(limit)s
         ))
           AND processed_at < to_timestamp(%(before)s)
        RETURNING 1
    )
    SELECT mine, (SELECT count(*) FROM gone) FROM turn
"""

# Without an index on the time: there is a row only where something failed.
PURGE_FAILURES: LiteralString = """
    WITH turn AS MATERIALIZED (
        SELECT pg_try_advisory_xact_lock(hashtextextended(%(lock)s::text, 0)) AS mine
    ), gone AS (
        DELETE FROM {schema}.handler_failures
         WHERE ctid = ANY (ARRAY(
                SELECT old.ctid
                  FROM {schema}.handler_failures old
                 WHERE (SELECT mine FROM turn)
                   AND old.last_failed_at < to_timestamp(%(before)s)
                 LIMIT %(limit)s
         ))
           AND last_failed_at < to_timestamp(%(before)s)
        RETURNING 1
    )
    SELECT mine, (SELECT count(*) FROM gone) FROM turn
"""

# The age is asked twice: a suspect that crashes again while this waits for its row is young again.
# There is no index on it: the table holds what crashed a process within two weeks, and no more.
PURGE_SUSPECTS: LiteralString = """
    DELETE FROM {schema}.suspects
     WHERE last_crash_at < clock_timestamp() - %(age)s * interval '1 second'
       AND (queue, message_id) IN (
            SELECT queue, message_id
              FROM {schema}.suspects
             WHERE last_crash_at < clock_timestamp() - %(age)s * interval '1 second'
             LIMIT %(limit)s
       )
"""

FORGET_GAPS: LiteralString = """
    WITH silent AS (
        DELETE FROM {schema}.inbox_polls
         WHERE polled_at < clock_timestamp() - %(forgotten)s * interval '1 second'
        RETURNING queue
    )
    DELETE FROM {schema}.inbox_gaps
     WHERE ended_at < to_timestamp(%(before)s) OR queue IN (SELECT queue FROM silent)
"""


class PostgresInboxUpkeep:
    """Keeps `ports.inbox_upkeep.InboxUpkeep`, on a connection of its own."""

    def __init__(self, sessions: Sessions, schema: str) -> None:
        self._session = sessions.session()
        self._lock = f"outboxd inbox {schema}"
        self._polled = statement(POLLED, schema)
        self._polls = statement(POLLS, schema)
        self._gaps = statement(GAPS, schema)
        self._now = statement(NOW, schema)
        self._purge_marks = statement(PURGE_MARKS, schema)
        self._purge_failures = statement(PURGE_FAILURES, schema)
        self._purge_suspects = statement(PURGE_SUSPECTS, schema)
        self._forget_gaps = statement(FORGET_GAPS, schema)

    async def polled(self, queue: str, lasting_seconds: float | None) -> None:
        await self._session.run(
            self._polled, {"queue": queue, "outage": OUTAGE_SECONDS, "lasting": lasting_seconds}
        )

    async def polls(self) -> Polls:
        gaps: dict[str, list[Gap]] = defaultdict(list)
        for queue, started_at, ended_at in await self._session.rows(self._gaps, {}):
            gaps[queue].append(Gap(started_at, ended_at))
        polls = [
            Polled(queue, polled_at, lasting, gaps[queue])
            for queue, polled_at, lasting in await self._session.rows(self._polls, {})
        ]
        ((now,),) = await self._session.rows(self._now, {})
        return Polls(now, polls)

    async def purge_marks(self, since: float, before: float, limit: int) -> int | None:
        return await self._purged(
            self._purge_marks, {"since": since, "before": before, "limit": limit}
        )

    async def purge_failures(self, before: float, limit: int) -> int | None:
        return await self._purged(self._purge_failures, {"before": before, "limit": limit})

    async def purge_suspects(self, older_than_seconds: float, limit: int) -> int:
        return await self._session.run(
            self._purge_suspects, {"age": older_than_seconds, "limit": limit}
        )

    async def forget_gaps(self, before: float) -> None:
        await self._session.run(
            self._forget_gaps, {"before": before, "forgotten": FORGOTTEN_SECONDS}
        )

    async def _purged(self, query: bytes, parameters: Parameters) -> int | None:
        ((mine, count),) = await self._session.rows(query, {**parameters, "lock": self._lock})
        return int(count) if mine else None
