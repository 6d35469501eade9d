"""What became of everything, counted from tables, queues and partners: never from the daemon."""

from collections.abc import Mapping

import psycopg
from msgspec import Struct
from psycopg import sql

from outboxd.demo.flows import Flow, Flows

OUTBOX = """
    SELECT count(*),
           count(*) FILTER (WHERE published_at IS NOT NULL),
           count(*) FILTER (WHERE published_at IS NULL),
           coalesce(extract(epoch FROM clock_timestamp()
               - min(occurred_at) FILTER (WHERE published_at IS NULL)), 0)::float8
      FROM {schema}.outbox_events
"""

BY_TYPE = "SELECT event_type, count(*) FROM {schema}.outbox_events GROUP BY event_type"


class QueueDepth(Struct, frozen=True):
    """How many messages a queue holds; exact where the service counts exactly."""

    visible: int = 0
    in_flight: int = 0
    delayed: int = 0

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed


class Outbox(Struct, frozen=True):
    """The outbox table in four numbers, and by type; the backlog includes events that the relay
    gave up."""

    committed: int
    published: int
    backlog: int
    oldest_seconds: float
    by_type: Mapping[str, int] = {}


class Count(Struct, frozen=True, kw_only=True):
    """Everything that must be there, and everything that must not, at one moment.

    `events_missing` and `events_unexpected` are by type, so that one does not hide the other.
    `analytics_total` is money, in the minor unit, and not among the effects.
    """

    orders: int
    events_committed: int
    events_published: int
    events_missing: int
    events_unexpected: int
    effects_expected: int
    effects_missing: int
    effects_duplicated: int
    wrong_shelves: int
    refunds: int
    dead_letters: int
    outbox_backlog: int
    messages_left: int
    flows: dict[str, Flow]
    analytics_total: Flow

    @property
    def complete(self) -> bool:
        """Every expected effect exists."""
        return self.effects_missing == 0 and self.analytics_total.missing == 0

    @property
    def quiet(self) -> bool:
        """Nothing waits anywhere."""
        return self.outbox_backlog == 0 and self.messages_left == 0


def count(
    flows: Flows,
    *,
    outbox: Outbox,
    queues: dict[str, QueueDepth],
    dead_letters: dict[str, QueueDepth],
) -> Count:
    """Put together what was counted."""
    types = flows.events_expected.keys() | outbox.by_type.keys()
    beyond = [outbox.by_type.get(name, 0) - flows.events_expected.get(name, 0) for name in types]
    return Count(
        orders=flows.orders,
        events_committed=outbox.committed,
        events_published=outbox.published,
        events_missing=sum(max(0, -number) for number in beyond),
        events_unexpected=sum(max(0, number) for number in beyond),
        effects_expected=flows.effects_expected,
        effects_missing=flows.effects_missing,
        effects_duplicated=flows.duplicated,
        wrong_shelves=flows.wrong_shelves,
        refunds=flows.refunds,
        dead_letters=sum(depth.total for depth in dead_letters.values()),
        outbox_backlog=outbox.backlog,
        messages_left=sum(depth.total for depth in queues.values()),
        flows=flows.by_name,
        analytics_total=flows.analytics_total,
    )


def count_outbox(connection: psycopg.Connection, schema: str) -> Outbox:
    """Rows of the outbox: all, published, not yet published, and the age of the oldest of these."""
    schema_name = sql.Identifier(schema)
    by_type = connection.execute(sql.SQL(BY_TYPE).format(schema=schema_name)).fetchall()
    (totals,) = connection.execute(sql.SQL(OUTBOX).format(schema=schema_name)).fetchall()
    committed, published, backlog, oldest_seconds = totals
    return Outbox(committed, published, backlog, oldest_seconds, dict(by_type))
