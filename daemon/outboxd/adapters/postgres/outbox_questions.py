"""The SQL with which operators look at the outbox; `outbox_rows` asks it."""

from typing import LiteralString

_COLUMNS: LiteralString = """
           o.seq, o.id::text, o.event_type, o.aggregate_type, o.aggregate_id,
           extract(epoch FROM o.occurred_at)::float8,
           extract(epoch FROM o.published_at)::float8,
           o.attempts,
           extract(epoch FROM o.next_attempt_at)::float8,
           o.last_error,
           extract(epoch FROM o.dead_at)::float8,
           coalesce(o.delivered_to, ARRAY[]::text[])
"""

_BUCKET: LiteralString = (
    "(hashtextextended(o.aggregate_type || chr(31) || o.aggregate_id, 0) & 63)::smallint"
)

_CONDITIONS: LiteralString = """
       (%(type)s::text IS NULL OR page.event_type ~ %(type)s)
   AND (%(aggregate_type)s::text IS NULL
        OR (page.aggregate_type = %(aggregate_type)s AND page.aggregate_id = %(aggregate_id)s))
   AND (%(older)s::float8 IS NULL
        OR page.occurred_at < clock_timestamp() - %(older)s * interval '1 second')
"""

# The first route that matches decides, as for the relay.
_ROUTE: LiteralString = """
    SELECT route.ordered
      FROM unnest(%(route_events)s::text[], %(route_aggregates)s::text[],
                  %(route_ordered)s::boolean[])
           WITH ORDINALITY AS route (event, aggregate, ordered, place)
     WHERE {event_type} ~ route.event AND {aggregate_type} ~ route.aggregate
     ORDER BY route.place
     LIMIT 1
"""

_ROUTE_OF_KIND: LiteralString = _ROUTE.replace("{event_type}", "kind.event_type").replace(
    "{aggregate_type}", "kind.aggregate_type"
)

_ROUTE_OF_ROW: LiteralString = _ROUTE.replace("{event_type}", "o.event_type").replace(
    "{aggregate_type}", "o.aggregate_type"
)

# The first event of each aggregate within the page is its head: a page begins at the start of its
# bucket, and all of an aggregate is in one bucket. Events of routes without an order are neither
# heads nor behind one. Aggregates are told apart by their hash, as the relay does: a window over
# their names took ten times as long, and joining heads to their events made the planner compare
# each with each (2 s for a bucket of 80,000). Details are joined at the end: the page stays narrow.
PENDING: LiteralString = f"""
    WITH page AS MATERIALIZED (
        SELECT o.seq, o.event_type, o.aggregate_type, o.aggregate_id, o.occurred_at,
               o.next_attempt_at,
               hashtextextended(o.aggregate_type || chr(31) || o.aggregate_id, 0) AS key
          FROM {{schema}}.outbox_events o
         WHERE {_BUCKET} = %(bucket)s::smallint
           AND o.published_at IS NULL
           AND o.dead_at IS NULL
           AND o.seq < %(before)s
           AND (%(aggregate_type)s::text IS NULL
                OR (o.aggregate_type = %(aggregate_type)s AND o.aggregate_id = %(aggregate_id)s))
         ORDER BY o.seq
         LIMIT %(look)s
    ), kinds AS MATERIALIZED (
        SELECT kind.event_type, kind.aggregate_type, ({_ROUTE_OF_KIND}) AS ordered
          FROM (SELECT DISTINCT event_type, aggregate_type FROM page) kind
    ), routed AS (
        SELECT page.*,
               %(hold)s AND kinds.ordered IS NULL AS is_unrouted,
               kinds.ordered IS FALSE AS is_alone
          FROM page
          JOIN kinds USING (event_type, aggregate_type)
    ), placed AS (
        SELECT routed.*,
               CASE WHEN NOT is_alone THEN first_value(seq) OVER chain END AS head_seq,
               CASE WHEN NOT is_alone THEN first_value(next_attempt_at) OVER chain END AS head_due,
               NOT is_alone AND first_value(is_unrouted) OVER chain AS head_unrouted
          FROM routed
        WINDOW chain AS (PARTITION BY key, is_alone ORDER BY seq)
    ), chosen AS (
        SELECT page.seq, page.is_unrouted, page.is_alone,
               page.head_seq, page.head_due, page.head_unrouted
          FROM placed page
         WHERE {_CONDITIONS}
           AND CASE %(state)s::text
                   WHEN 'pending' THEN true
                   WHEN 'failing' THEN page.next_attempt_at > clock_timestamp()
                                       AND isfinite(page.next_attempt_at)
                   WHEN 'stopped' THEN page.next_attempt_at = 'infinity'
                   WHEN 'held' THEN page.is_unrouted
                   WHEN 'blocked' THEN page.seq <> page.head_seq
                                       AND (page.head_unrouted
                                            OR page.head_due > clock_timestamp())
               END
         ORDER BY page.seq
         LIMIT %(limit)s
    )
    SELECT (SELECT count(*) FROM page), (SELECT max(seq) FROM page), {_COLUMNS},
           chosen.is_unrouted, chosen.head_seq,
           extract(epoch FROM chosen.head_due)::float8, chosen.head_unrouted, chosen.is_alone
      FROM (VALUES (1)) AS always (there)
      LEFT JOIN chosen ON true
      LEFT JOIN {{schema}}.outbox_events o ON o.seq = chosen.seq
     ORDER BY o.seq
"""

_TAIL: LiteralString = f"""
    , chosen AS (
        SELECT seq
          FROM page
         WHERE {_CONDITIONS}
           AND CASE %(state)s::text
                   WHEN 'published' THEN published_at IS NOT NULL
                   WHEN 'discarded' THEN published_at IS NULL AND dead_at IS NOT NULL
                                         AND next_attempt_at = 'infinity'
                   WHEN 'dead' THEN published_at IS NULL AND dead_at IS NOT NULL
                                    AND next_attempt_at IS DISTINCT FROM 'infinity'
               END
    )
    SELECT (SELECT count(*) FROM page), (SELECT %(edge)s FROM page), {_COLUMNS}
      FROM (VALUES (1)) AS always (there)
      LEFT JOIN chosen ON true
      LEFT JOIN {{schema}}.outbox_events o ON o.seq = chosen.seq
"""

_PAGE: LiteralString = """
        SELECT o.seq, o.event_type, o.aggregate_type, o.aggregate_id, o.occurred_at,
               o.published_at, o.dead_at, o.next_attempt_at
          FROM {schema}.outbox_events o
"""

# By the index of dead rows, which has every row that was ever given up.
DEAD: LiteralString = (
    f"WITH page AS MATERIALIZED ({_PAGE}"
    " WHERE o.dead_at IS NOT NULL AND o.seq > %(after)s ORDER BY o.seq LIMIT %(look)s)"
    + _TAIL.replace("%(edge)s", "max(seq)")
    + " ORDER BY o.seq LIMIT %(limit)s"
)

# By the primary key from its end: the newest are what a person looks for.
PUBLISHED: LiteralString = (
    f"WITH page AS MATERIALIZED ({_PAGE}"
    " WHERE o.seq < %(after)s ORDER BY o.seq DESC LIMIT %(look)s)"
    + _TAIL.replace("%(edge)s", "min(seq)")
    + " ORDER BY o.seq DESC LIMIT %(limit)s"
)

BY_SEQ: LiteralString = f"""
    SELECT {_COLUMNS} FROM {{schema}}.outbox_events o WHERE o.seq = ANY (%(seqs)s::bigint[])
     ORDER BY o.seq
"""

BY_INDEXED_ID: LiteralString = f"""
    SELECT {_COLUMNS} FROM {{schema}}.outbox_events o WHERE o.id = ANY (%(ids)s::uuid[])
     ORDER BY o.seq
"""

BY_ID: LiteralString = f"""
    SELECT {_COLUMNS}
      FROM {{schema}}.outbox_events o
     WHERE o.seq > %(after)s AND o.seq <= %(upto)s AND o.id = ANY (%(ids)s::uuid[])
     ORDER BY o.seq
"""

# Every write would pay for an index on the id, which only people ask for. A table that was adopted
# may have one nevertheless.
ID_IS_INDEXED: LiteralString = """
    SELECT EXISTS (
        SELECT 1
          FROM pg_index i
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
         WHERE i.indrelid = to_regclass('{schema}.outbox_events')
           AND a.attname = 'id' AND i.indisvalid AND i.indpred IS NULL
    )
"""

SPAN: LiteralString = """
    SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM {schema}.outbox_events
"""

BUCKET_OF: LiteralString = """
    SELECT (hashtextextended(%(aggregate_type)s::text || chr(31) || %(aggregate_id)s::text, 0)
            & 63)::int
"""

# Asked for one row: walks its bucket up to the first event of its aggregate that keeps its order,
# which is that row or one before it.
HEAD: LiteralString = f"""
    SELECT o.seq, o.event_type, extract(epoch FROM o.next_attempt_at)::float8
      FROM {{schema}}.outbox_events o
     WHERE {_BUCKET} = (hashtextextended(
               %(aggregate_type)s::text || chr(31) || %(aggregate_id)s::text, 0) & 63)::smallint
       AND o.aggregate_type = %(aggregate_type)s
       AND o.aggregate_id = %(aggregate_id)s
       AND o.published_at IS NULL
       AND o.dead_at IS NULL
       AND o.seq <= %(seq)s
       AND coalesce(({_ROUTE_OF_ROW}), true)
     ORDER BY o.seq
     LIMIT 1
"""

PAYLOAD: LiteralString = """
    SELECT payload::text, headers::text FROM {schema}.outbox_events WHERE seq = %(seq)s
"""

# Whether the route of such events keeps their order; no row if none matches.
ROUTE: LiteralString = _ROUTE.replace("{event_type}", "%(event)s::text").replace(
    "{aggregate_type}", "%(aggregate)s::text"
)
