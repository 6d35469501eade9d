"""The statements of a producer. All of them only insert, or lock an aggregate first."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg import sql

from outboxd.producer.rows import Row

INSERT = """
    INSERT INTO {table} (id, event_type, aggregate_type, aggregate_id, payload, headers)
    VALUES (%s, %s, %s, %s, %s::jsonb, %s::jsonb)
"""

# The order of the given rows is that of their `seq`: an identity is drawn after the sort.
INSERT_MANY = """
    INSERT INTO {table} (id, event_type, aggregate_type, aggregate_id, payload, headers)
    SELECT given.id, given.event_type, given.aggregate_type, given.aggregate_id,
           given.payload::jsonb, given.headers::jsonb
      FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[])
           WITH ORDINALITY
           AS given(id, event_type, aggregate_type, aggregate_id, payload, headers, position)
     ORDER BY given.position
"""

# Held until the end of the transaction, and taken before the insert draws its `seq`. The key is
# that of `outbox_publish` in SQL and of the relay's buckets. Sorted, so that two calls with the
# same aggregates cannot wait for each other.
LOCK = """
    SELECT pg_advisory_xact_lock(aggregates.key)
      FROM (
        SELECT DISTINCT hashtextextended(given.type || chr(31) || given.id, 0) AS key
          FROM unnest(%s::text[], %s::text[]) AS given(type, id)
         ORDER BY key
      ) aggregates
"""


class Statement(NamedTuple):
    """What to execute, with its parameters."""

    query: sql.Composed
    parameters: Sequence[Any]


def storing(rows: Sequence[Row], schema: str, *, ordered: bool) -> list[Statement]:
    """The statements that store the rows, in order."""
    insertion = _insertion(rows, sql.Identifier(schema, "outbox_events"))
    return [_lock(rows), insertion] if ordered else [insertion]


def _insertion(rows: Sequence[Row], table: sql.Identifier) -> Statement:
    if len(rows) == 1:
        return Statement(sql.SQL(INSERT).format(table=table), rows[0].values())
    columns = [list(column) for column in zip(*(row.values() for row in rows), strict=True)]
    return Statement(sql.SQL(INSERT_MANY).format(table=table), columns)


def _lock(rows: Sequence[Row]) -> Statement:
    types = [row.aggregate_type for row in rows]
    ids = [row.aggregate_id for row in rows]
    return Statement(sql.Composed([sql.SQL(LOCK)]), (types, ids))
