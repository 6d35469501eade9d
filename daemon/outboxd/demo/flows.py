"""How fast the handlers work, measured in the database and the mailbox."""

import psycopg
from msgspec import Struct
from psycopg import sql

from outboxd.demo.counting import EMAIL_HANDLER
from outboxd.demo.mail import RECENT_EMAILS, Mail

RECENT_EFFECTS = 2 * RECENT_EMAILS
"""Of two handlers: a rate is right up to a fifth of a thousand effects a second of each."""

# An e-mail stands in no ledger: it has the time of its file, and the event of its order's payment.
LATENCIES = """
    WITH recent AS (
        (SELECT event_id, handler, at FROM shop.effects ORDER BY seq DESC LIMIT %(recent)s)
        UNION ALL
        SELECT payment.event_id, %(email_handler)s, email.at
          FROM unnest(%(order_ids)s::uuid[], %(sent_at)s::timestamptz[]) AS email (order_id, at)
          JOIN shop.payments AS payment USING (order_id)
    )
    SELECT recent.handler,
           percentile_cont(0.50) WITHIN GROUP (ORDER BY recent.at - event.occurred_at),
           percentile_cont(0.99) WITHIN GROUP (ORDER BY recent.at - event.occurred_at),
           count(*) FILTER (WHERE recent.at > clock_timestamp() - interval '5 seconds') / 5.0
      FROM recent
      JOIN {schema}.outbox_events AS event ON event.id = recent.event_id
     GROUP BY recent.handler
     ORDER BY recent.handler
"""


class Flow(Struct, frozen=True, kw_only=True):
    """How fast one handler works: from the event's insert to its effect, and effects a second."""

    handler: str
    p50_seconds: float
    p99_seconds: float
    rate: float


def measure(connection: psycopg.Connection, schema: str, mail: Mail) -> tuple[Flow, ...]:
    """The recent work of every handler that has done any, by name."""
    query = sql.SQL(LATENCIES).format(schema=sql.Identifier(schema))
    parameters = {
        "recent": RECENT_EFFECTS,
        "email_handler": EMAIL_HANDLER,
        "order_ids": [delivery.order_id for delivery in mail.recent],
        "sent_at": [delivery.at for delivery in mail.recent],
    }
    return tuple(
        Flow(
            handler=handler,
            p50_seconds=p50.total_seconds(),
            p99_seconds=p99.total_seconds(),
            rate=float(rate),
        )
        for handler, p50, p99, rate in connection.execute(query, parameters)
    )
