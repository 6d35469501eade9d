"""What became of every order, counted from tables, queues and mailbox: never from the daemon.

Expected by formula, for each order: one sale counted, one payment applied, one e-mail sent.
"""

import psycopg
from msgspec import Struct
from psycopg import sql

from outboxd.demo.mail import Mail

EFFECTS_PER_ORDER = 3
EVENTS_PER_ORDER = 2
EFFECTS_OF_PAYMENT = 2
"""The most that one event causes."""

EMAIL_HANDLER = "notification.confirmation_email"

HANDLERS = (
    ("order.created", "analytics.count_order"),
    ("payment.succeeded", "payment.mark_paid"),
)
"""Event type and handler of the effects that stand in the ledger; e-mails are in the mailbox."""

OUTBOX = """
    SELECT count(*),
           count(*) FILTER (WHERE published_at IS NOT NULL),
           count(*) FILTER (WHERE published_at IS NULL),
           coalesce(extract(epoch FROM clock_timestamp()
               - min(occurred_at) FILTER (WHERE published_at IS NULL)), 0)::float8
      FROM {schema}.outbox_events
"""

# From the orders, so that an event which is not even in the outbox is missed as well.
MISSING = """
    SELECT count(*)
      FROM shop.orders AS ordered
     CROSS JOIN unnest(%(event_types)s::text[], %(handlers)s::text[]) AS due (event_type, handler)
      LEFT JOIN {schema}.outbox_events AS event
             ON event.aggregate_type = 'order'
            AND event.aggregate_id = ordered.id::text
            AND event.event_type = due.event_type
      LEFT JOIN (SELECT DISTINCT event_id, handler FROM shop.effects) AS effect
             ON effect.event_id = event.id
            AND effect.handler = due.handler
     WHERE effect.event_id IS NULL
"""

DUPLICATED = "SELECT count(*) - count(DISTINCT (event_id, handler)) FROM shop.effects"

ORDERS = "SELECT id::text FROM shop.orders"


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
    """Everything that must be there, and everything that must not, at one moment."""

    orders: int
    events_committed: int
    events_published: int
    effects_expected: int
    effects_missing: int
    effects_duplicated: int
    emails_repeated: int
    dead_letters: int
    outbox_backlog: int
    messages_left: int

    @property
    def complete(self) -> bool:
        """Every expected effect exists."""
        return self.effects_missing == 0

    @property
    def quiet(self) -> bool:
        """Nothing waits anywhere."""
        return self.outbox_backlog == 0 and self.messages_left == 0

    @property
    def events_unexpected(self) -> int:
        """Events beyond those of the formula: a repeated request that published again."""
        return self.events_committed - self.orders * EVENTS_PER_ORDER


def count(
    connection: psycopg.Connection,
    schema: str,
    *,
    outbox: Outbox,
    queues: dict[str, QueueDepth],
    dead_letters: dict[str, QueueDepth],
    mail: Mail,
) -> Count:
    """Count effects now, and put them beside what has just been read elsewhere.

    `connection` is in autocommit mode.
    """
    order_ids = {order_id for (order_id,) in connection.execute(ORDERS)}
    missing, duplicated = _count_ledger(connection, schema)
    return Count(
        orders=len(order_ids),
        events_committed=outbox.committed,
        events_published=outbox.published,
        effects_expected=len(order_ids) * EFFECTS_PER_ORDER,
        effects_missing=missing + len(order_ids - mail.orders),
        effects_duplicated=duplicated + mail.different_for_one_order,
        emails_repeated=mail.repeated,
        dead_letters=sum(depth.total for depth in dead_letters.values()),
        outbox_backlog=outbox.backlog,
        messages_left=sum(depth.total for depth in queues.values()),
    )


def count_outbox(connection: psycopg.Connection, schema: str) -> Outbox:
    """Rows of the outbox: all, published, not yet published, and the age of the oldest of these."""
    query = sql.SQL(OUTBOX).format(schema=sql.Identifier(schema))
    return Outbox(*connection.execute(query).fetchall()[0])


def _count_ledger(connection: psycopg.Connection, schema: str) -> tuple[int, int]:
    """Pairs of event and handler without a row, and rows beyond one for a pair."""
    query = sql.SQL(MISSING).format(schema=sql.Identifier(schema))
    event_types, handlers = (list(column) for column in zip(*HANDLERS, strict=True))
    parameters = {"event_types": event_types, "handlers": handlers}
    ((missing,),) = connection.execute(query, parameters).fetchall()
    ((duplicated,),) = connection.execute(DUPLICATED).fetchall()
    return missing, duplicated
