"""What one relay does for all of them: looking at the whole outbox, and deleting what is old."""

from outboxd.adapters.postgres.row_counts import DEAD, PENDING, DeadCount, PendingCount
from outboxd.adapters.postgres.sessions import Sessions, statement
from outboxd.ports.outbox import Purged, Survey

DISCARDED_KEPT_SECONDS = 7 * 86_400.0
"""However short the retention is: so long a discard can be taken back."""

# The first row of each bucket: 64 probes. The oldest row of a bucket is its first but for clocks
# that were set back.
OLDEST = """
    SELECT coalesce(extract(epoch FROM clock_timestamp() - min(head.occurred_at))::float8, 0)
      FROM generate_series(0, 63) AS b(n)
     CROSS JOIN LATERAL (
        SELECT o.occurred_at
          FROM {schema}.outbox_events o
         WHERE (hashtextextended(o.aggregate_type || chr(31) || o.aggregate_id, 0) & 63)
               ::smallint = b.n::smallint
           AND o.published_at IS NULL
           AND o.dead_at IS NULL
         ORDER BY o.seq
         LIMIT 1
     ) head
     WHERE isfinite(head.occurred_at)
"""

# By the primary key, so that no index on published_at is needed, which each mark would pay for.
# Discarded rows go as well; what the relay gave up, and nobody has decided about, never does.
PURGE = """
    WITH page AS MATERIALIZED (
        SELECT seq, occurred_at
          FROM {schema}.outbox_events
         WHERE seq > %(after)s
         ORDER BY seq
         LIMIT %(limit)s
    ), gone AS (
        DELETE FROM {schema}.outbox_events o
         USING page
         WHERE o.seq = page.seq
           AND (o.published_at < clock_timestamp() - %(age)s * interval '1 second'
                OR (o.published_at IS NULL
                    AND o.next_attempt_at = 'infinity'
                    AND o.dead_at < clock_timestamp() - %(discarded_age)s * interval '1 second'))
        RETURNING 1
    )
    SELECT coalesce(max(seq), %(after)s),
           (SELECT count(*) FROM gone),
           count(*) < %(limit)s
               OR bool_or(occurred_at > clock_timestamp() - %(age)s * interval '1 second')
      FROM page
"""

FORGET = """
    DELETE FROM {schema}.outbox_relays
     WHERE seen < clock_timestamp() - %(silent)s * interval '1 second'
"""


class PostgresUpkeep:
    """Slow statements on a connection of their own, opened only where they are needed."""

    def __init__(self, sessions: Sessions, schema: str) -> None:
        self._session = sessions.session()
        self._pending = statement(PENDING, schema)
        self._oldest = statement(OLDEST, schema)
        self._dead = statement(DEAD, schema)
        self._purge = statement(PURGE, schema)
        self._forget = statement(FORGET, schema)

    async def survey(self) -> Survey:
        pending = await self._counted(PendingCount(), self._pending)
        ((oldest,),) = await self._session.rows(self._oldest, {})
        dead = await self._counted(DeadCount(), self._dead)
        return Survey(pending, max(0.0, oldest), dead)

    async def purge(self, older_than_seconds: float, after_seq: int, limit: int) -> Purged:
        ((last_seq, deleted, finished),) = await self._session.rows(
            self._purge,
            {
                "age": older_than_seconds,
                "discarded_age": max(older_than_seconds, DISCARDED_KEPT_SECONDS),
                "after": after_seq,
                "limit": limit,
            },
        )
        return Purged(last_seq, deleted, bool(finished))

    async def forget_relays(self, silent_seconds: float) -> None:
        await self._session.run(self._forget, {"silent": silent_seconds})

    async def _counted(self, count: PendingCount | DeadCount, query: bytes) -> int:
        while (parameters := count.question()) is not None:
            count.answered(await self._session.rows(query, parameters))
        return count.total
