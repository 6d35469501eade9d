"""The SQL with which operators change the outbox; `operations` runs it."""

from typing import LiteralString

# A row that is locked is being marked by a relay, or changed by somebody else: it is left, and told
# so, rather than waited for. What was asked of the row before is asked again under its lock.
_PICKED: LiteralString = """
    WITH picked AS MATERIALIZED (
        SELECT seq
          FROM {schema}.outbox_events
         WHERE seq = ANY (%(seqs)s::bigint[])
           AND published_at IS NULL
         ORDER BY seq
           FOR UPDATE SKIP LOCKED
    )
"""

_AUDITED: LiteralString = """
    , audited AS (
        INSERT INTO {schema}.outbox_audit
               (operator, run, command, reason, selection, events, first_seq, last_seq, event_ids)
        SELECT %(operator)s::text, %(run)s, %(command)s::text, %(reason)s::text,
               %(selection)s::jsonb,
               count(*), min(seq), max(seq), array_agg(id ORDER BY seq)
          FROM changed
        HAVING count(*) > 0
    )
"""

# The error stays until the event is published: it tells why it was dead. Destinations that have
# accepted the event are not sent it again.
REQUEUE: LiteralString = (
    _PICKED
    + """
    , changed AS (
        UPDATE {schema}.outbox_events o
           SET dead_at = NULL, attempts = 0, next_attempt_at = NULL
          FROM picked
         WHERE o.seq = picked.seq AND (o.dead_at IS NOT NULL OR o.next_attempt_at = 'infinity')
        RETURNING o.seq, o.id
    )
"""
    + _AUDITED
    + "SELECT seq FROM changed"
)

# Dead, so that no relay takes it up, and never to be tried again, which tells it apart from what a
# relay has given up (core.outbox_standing). Not marked as published: that would be untrue, and a
# destination that accepts the event at this very moment could not be recorded any more.
DISCARD: LiteralString = (
    _PICKED
    + """
    , changed AS (
        UPDATE {schema}.outbox_events o
           SET dead_at = coalesce(o.dead_at, clock_timestamp()),
               next_attempt_at = 'infinity',
               last_error = left(%(note)s::text || coalesce('; before: ' || o.last_error, ''), 1000)
          FROM picked
         WHERE o.seq = picked.seq
           AND (o.dead_at IS NULL OR o.next_attempt_at IS DISTINCT FROM 'infinity')
        RETURNING o.seq, o.id
    )
"""
    + _AUDITED
    + "SELECT seq FROM changed"
)

PRUNE: LiteralString = """
    WITH page AS MATERIALIZED (
        SELECT seq, published_at, dead_at, next_attempt_at
          FROM {schema}.outbox_events
         WHERE seq > %(after)s AND seq <= %(upto)s
         ORDER BY seq
         LIMIT %(limit)s
    ), doomed AS (
        SELECT seq
          FROM page
         WHERE published_at < clock_timestamp() - %(age)s * interval '1 second'
            OR (published_at IS NULL
                AND next_attempt_at = 'infinity'
                AND dead_at < clock_timestamp() - %(age)s * interval '1 second')
    ), changed AS (
        DELETE FROM {schema}.outbox_events o
         USING doomed
         WHERE o.seq = doomed.seq
           AND (o.published_at IS NOT NULL
                OR (o.dead_at IS NOT NULL AND o.next_attempt_at = 'infinity'))
        RETURNING o.seq
    ), audited AS (
        INSERT INTO {schema}.outbox_audit
               (operator, run, command, reason, selection, events, first_seq, last_seq)
        SELECT %(operator)s::text, %(run)s, 'prune', %(reason)s::text, %(selection)s::jsonb,
               count(*), min(seq), max(seq)
          FROM changed
        HAVING count(*) > 0
    )
    SELECT coalesce(max(seq), %(after)s), count(*) < %(limit)s, (SELECT count(*) FROM changed)
      FROM page
"""

# Counts without deleting, by the same walk.
PRUNABLE: LiteralString = """
    WITH page AS MATERIALIZED (
        SELECT seq, published_at, dead_at, next_attempt_at
          FROM {schema}.outbox_events
         WHERE seq > %(after)s AND seq <= %(upto)s
         ORDER BY seq
         LIMIT %(limit)s
    )
    SELECT coalesce(max(seq), %(after)s), count(*) < %(limit)s,
           count(*) FILTER (
               WHERE published_at < clock_timestamp() - %(age)s * interval '1 second'
                  OR (published_at IS NULL
                      AND next_attempt_at = 'infinity'
                      AND dead_at < clock_timestamp() - %(age)s * interval '1 second')
           )
      FROM page
"""

SPAN: LiteralString = """
    SELECT coalesce(min(seq), 1), coalesce(max(seq), 0) FROM {schema}.outbox_events
"""

# One walk over each bucket, however many aggregates are asked for.
FOLLOWERS: LiteralString = """
    SELECT count(*)
      FROM (
        SELECT 1
          FROM (
            SELECT o.aggregate_type, o.aggregate_id, o.seq
              FROM {schema}.outbox_events o
             WHERE (hashtextextended(o.aggregate_type || chr(31) || o.aggregate_id, 0) & 63)
                   ::smallint = %(bucket)s::smallint
               AND o.published_at IS NULL
               AND o.dead_at IS NULL
             ORDER BY o.seq
             LIMIT %(look)s
          ) page
          JOIN unnest(%(types)s::text[], %(ids)s::text[], %(seqs)s::bigint[])
               AS first (aggregate_type, aggregate_id, seq)
            ON page.aggregate_type = first.aggregate_type
           AND page.aggregate_id = first.aggregate_id
           AND page.seq > first.seq
         LIMIT %(cap)s
      ) counted
"""

# Of the last entries only: the table grows for ever, and one long prune has many.
RUNS: LiteralString = """
    SELECT run::text, extract(epoch FROM min(at))::float8, extract(epoch FROM max(at))::float8,
           min(role), min(operator), min(command), min(reason), min(selection::text),
           sum(events)::bigint, min(first_seq), max(last_seq)
      FROM (SELECT * FROM {schema}.outbox_audit ORDER BY entry DESC LIMIT 20000) recent
     GROUP BY run
     ORDER BY max(entry) DESC
     LIMIT %(limit)s
"""

EVENTS_OF_RUN: LiteralString = """
    SELECT id::text
      FROM {schema}.outbox_audit, unnest(event_ids) AS id
     WHERE run = %(run)s::uuid
     ORDER BY entry
     LIMIT %(limit)s
"""
