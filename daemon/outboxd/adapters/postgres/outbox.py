"""The pending rows of the outbox in PostgreSQL: read without claiming, marked in batches."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import psycopg

from outboxd.adapters.postgres.sessions import Parameters, Session, Sessions, array, statement
from outboxd.core.clock import boottime
from outboxd.core.errors import Unavailable
from outboxd.core.horizon import Sample
from outboxd.core.outbox import DeliveryMark, FailureMark, StoredEvent
from outboxd.core.windows import EVERYTHING, Window
from outboxd.ports.outbox import MarkRefused, ReadCutOff

READ_BYTES_PER_BUCKET = 256 * 1024
"""Beyond it a bucket's page ends, so that 64 pages of large events fit into memory."""

# No row is locked or written: owning the bucket is the claim. The keys and rows that are in hand
# are left out inside the statement, so that their state is of before its snapshot: an event that is
# settled between the snapshot and the answer would come back and be published again.
#
# NOT IN a subquery, rather than <> ALL: the planner takes a long array for so selective that it
# sorts the whole bucket (measured: 280 ms instead of 9 ms over 100,000 rows), while a hashed
# subplan leaves it with the index in its order.
READ = """
    SELECT e.key, e.seq, e.id::text, e.event_type, e.aggregate_type, e.aggregate_id,
           e.payload::text,
           e.headers ->> 'traceparent',
           to_char(e.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
           %(now)s - CASE WHEN isfinite(e.occurred_at)
                          THEN extract(epoch FROM clock_timestamp() - e.occurred_at)::float8
                          ELSE 0 END,
           e.attempts,
           %(now)s + CASE WHEN e.next_attempt_at IS NULL THEN 0
                          WHEN isfinite(e.next_attempt_at)
                          THEN extract(epoch FROM e.next_attempt_at - clock_timestamp())::float8
                          ELSE 'infinity' END,
           e.delivered_to
      FROM unnest(%(buckets)s::smallint[], %(after)s::bigint[], %(up_to)s::bigint[])
           AS b(n, after, up_to)
     CROSS JOIN LATERAL (
        SELECT page.*, sum(page.size) OVER (ORDER BY page.seq) - page.size AS size_before
          FROM (
            SELECT o.*, pg_column_size(o.payload) AS size,
                   hashtextextended(o.aggregate_type || chr(31) || o.aggregate_id, 0) AS key
              FROM {schema}.outbox_events o
             WHERE (hashtextextended(o.aggregate_type || chr(31) || o.aggregate_id, 0) & 63)
                   ::smallint = b.n
               AND /* window */ true
               AND o.published_at IS NULL
               AND o.dead_at IS NULL
               AND hashtextextended(o.aggregate_type || chr(31) || o.aggregate_id, 0)
                   NOT IN (SELECT unnest(%(excluded_keys)s::bigint[]))
               AND o.seq NOT IN (SELECT unnest(%(excluded_seqs)s::bigint[]))
             ORDER BY o.seq
             LIMIT %(per_bucket)s
          ) page
     ) e
     WHERE e.size_before < %(bytes)s
"""

# A statement of its own: the planner takes a condition on the window for so selective that it sorts
# a bucket of some hundred rows. Who has windows has far more, and gets the index's order.
READ_WINDOWS = READ.replace("/* window */ true", "o.seq > b.after AND o.seq <= b.up_to")

# Not the sequence's last value, for which a relay would need one more privilege: the last row that
# can be seen serves as well, since its number was taken before.
#
# An id of our own, rather than pg_snapshot_xmax: that is the one after the last that has *ended*,
# and a transaction may be open already that has it, and a number below the last row's.
SAMPLE = """
    SELECT pg_snapshot_xmin(now)::text::bigint, pg_current_xact_id()::text::bigint,
           (SELECT coalesce(max(seq), 0) FROM {schema}.outbox_events)
      FROM pg_current_snapshot() AS now
"""

# Unfenced: that a destination has it is a fact, whoever owns the bucket by now.
PUBLISHED = """
    UPDATE {schema}.outbox_events
       SET published_at = clock_timestamp(), last_error = NULL
     WHERE seq = ANY (%(seqs)s::bigint[]) AND published_at IS NULL
"""

DELETE_PUBLISHED = "DELETE FROM {schema}.outbox_events WHERE seq = ANY (%(seqs)s::bigint[])"

STILL_PENDING = """
    SELECT seq
      FROM {schema}.outbox_events
     WHERE seq = ANY (%(seqs)s::bigint[]) AND published_at IS NULL AND dead_at IS NULL
"""

DELIVERED = """
    UPDATE {schema}.outbox_events o
       SET delivered_to = (
            SELECT array_agg(DISTINCT name)
              FROM unnest(coalesce(o.delivered_to, ARRAY[]::text[]) || given.names) AS name
       )
      FROM (
        SELECT seq, array_agg(name) AS names
          FROM unnest(%(seqs)s::bigint[], %(names)s::text[]) AS pair(seq, name)
         GROUP BY seq
      ) given
     WHERE o.seq = given.seq AND o.published_at IS NULL
"""

# Fenced by the bucket's owner and epoch: a new owner may have published the row meanwhile.
FAILED = """
    UPDATE {schema}.outbox_events o
       SET attempts = given.attempts,
           next_attempt_at = CASE WHEN given.delay = 'infinity' THEN 'infinity'
                                  ELSE clock_timestamp() + given.delay * interval '1 second' END,
           last_error = given.error,
           dead_at = CASE WHEN given.dead THEN clock_timestamp() END
      FROM unnest(%(seqs)s::bigint[], %(buckets)s::smallint[], %(epochs)s::bigint[],
                  %(attempts)s::integer[], %(delays)s::float8[], %(errors)s::text[],
                  %(dead)s::boolean[])
           AS given(seq, bucket, epoch, attempts, delay, error, dead)
      JOIN {schema}.outbox_buckets held
        ON held.bucket = given.bucket AND held.epoch = given.epoch AND held.owner = %(relay)s
     WHERE o.seq = given.seq AND o.published_at IS NULL AND o.dead_at IS NULL
"""

_ROW_TO_BLAME = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
)
"""What a trigger or a constraint makes of a batch of marks because of one row."""

_ROW_LOCKED = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)


class PostgresOutbox:
    """Reads on one connection and marks on another, so that neither waits for the other."""

    def __init__(self, sessions: Sessions, schema: str, *, keep_published: bool) -> None:
        """`keep_published` False deletes rows instead of marking them."""
        self._reading = sessions.session()
        self._marking = sessions.session()
        self._read = statement(READ, schema)
        self._read_windows = statement(READ_WINDOWS, schema)
        self._sample = statement(SAMPLE, schema)
        self._published = statement(PUBLISHED if keep_published else DELETE_PUBLISHED, schema)
        self._still_pending = statement(STILL_PENDING, schema)
        self._delivered = statement(DELIVERED, schema)
        self._failed = statement(FAILED, schema)

    async def read(
        self,
        windows: Mapping[int, Window],
        per_bucket: int,
        excluded_keys: str,
        excluded_seqs: Collection[int],
    ) -> list[StoredEvent]:
        whole = all(window == EVERYTHING for window in windows.values())
        wanted: Parameters = {
            "buckets": array(windows),
            "after": array(window.after for window in windows.values()),
            "up_to": array(window.up_to for window in windows.values()),
            "per_bucket": per_bucket,
            "excluded_keys": "{" + excluded_keys + "}",
            "excluded_seqs": array(excluded_seqs),
            "bytes": READ_BYTES_PER_BUCKET,
            "now": boottime(),
        }
        try:
            rows = await self._reading.rows(self._read if whole else self._read_windows, wanted)
        except Unavailable as error:
            if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
                raise ReadCutOff(str(error)) from error
            raise
        rows.sort(key=_seq)
        return [StoredEvent(*row) for row in rows]

    async def sample(self) -> Sample:
        ((oldest_open, next_id, last_seq),) = await self._reading.rows(self._sample, {})
        return Sample(oldest_open, next_id, last_seq)

    async def mark_published(self, seqs: Collection[int]) -> frozenset[int]:
        # Sorted: two relays that mark the same rows after a change of owner must not deadlock.
        wanted = {"seqs": array(sorted(seqs))}
        if await _mark(self._marking, self._published, wanted) == len(seqs):
            return frozenset()
        pending = await self._marking.rows(self._still_pending, wanted)
        return frozenset(seq for (seq,) in pending)

    async def mark_delivered(self, marks: Sequence[DeliveryMark]) -> None:
        pairs = [(mark.seq, name) for mark in marks for name in mark.destinations]
        await _mark(
            self._marking,
            self._delivered,
            {"seqs": array(seq for seq, _ in pairs), "names": [name for _, name in pairs]},
        )

    async def mark_failed(self, relay: UUID, marks: Sequence[FailureMark]) -> None:
        await _mark(
            self._marking,
            self._failed,
            {
                "relay": relay,
                "seqs": array(mark.seq for mark in marks),
                "buckets": array(mark.bucket for mark in marks),
                "epochs": array(mark.epoch for mark in marks),
                "attempts": array(mark.attempts for mark in marks),
                "delays": [mark.delay_seconds for mark in marks],
                "errors": [mark.error for mark in marks],
                "dead": [mark.dead for mark in marks],
            },
        )


def _seq(row: Sequence[int]) -> int:
    return row[1]


async def _mark(session: Session, query: bytes, parameters: Parameters) -> int:
    try:
        return await session.run(query, parameters)
    except _ROW_TO_BLAME as error:
        raise MarkRefused(str(error)) from error
    except Unavailable as error:
        if isinstance(error.__cause__, _ROW_LOCKED):
            raise MarkRefused(str(error)) from error
        raise
