"""What became of everything, counted from tables, queues and partners: never from the daemon."""

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


class QueueDepth(Struct, frozen=True):
    """How many messages a queue holds; exact where the service counts exactly."""

    visible: int = 0
    in_flight: int = 0
    delayed: int = 0

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed


class Outbox(Struct, frozen=True):
    """The outbox table in four numbers; the backlog includes events that the relay gave up."""

    committed: int
    published: int
    backlog: int
    oldest_seconds: float


class Count(Struct, frozen=True, kw_only=True):
    """Everything that must be there, and everything that must not, at one moment.

    `analytics_total` is money, in the minor unit, and not among the effects.
    """

    orders: int
    events_expected: int
    events_committed: int
    events_published: int
    effects_expected: int
    effects_missing: int
    effects_duplicated: int
    emails_repeated: int
    calls_repeated: int
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

    @property
    def events_unexpected(self) -> int:
        """Events beyond those of the formula: a repeated request that published again."""
        return self.events_committed - self.events_expected


def count(
    flows: Flows,
    *,
    outbox: Outbox,
    queues: dict[str, QueueDepth],
    dead_letters: dict[str, QueueDepth],
) -> Count:
    """Put together what was counted."""
    mailed = ("emails_sent", "confirmations_sent")
    repeated = {name: flow.repeated for name, flow in flows.by_name.items()}
    return Count(
        orders=flows.orders,
        events_expected=flows.events_expected,
        events_committed=outbox.committed,
        events_published=outbox.published,
        effects_expected=flows.effects_expected,
        effects_missing=flows.effects_missing,
        effects_duplicated=flows.duplicated,
        emails_repeated=sum(repeated[name] for name in mailed),
        calls_repeated=sum(times for name, times in repeated.items() if name not in mailed),
        dead_letters=sum(depth.total for depth in dead_letters.values()),
        outbox_backlog=outbox.backlog,
        messages_left=sum(depth.total for depth in queues.values()),
        flows=flows.by_name,
        analytics_total=flows.analytics_total,
    )


def count_outbox(connection: psycopg.Connection, schema: str) -> Outbox:
    """Rows of the outbox: all, published, not yet published, and the age of the oldest of these."""
    query = sql.SQL(OUTBOX).format(schema=sql.Identifier(schema))
    return Outbox(*connection.execute(query).fetchall()[0])
