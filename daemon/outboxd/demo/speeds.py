"""How fast the flows are, measured in the database."""

import psycopg
from msgspec import Struct
from psycopg import sql

RECENT = 2000
"""Effects that are looked at; as many notifications besides."""

# A notification stands in no ledger: it has its mark, and the event of its order's payment.
LATENCIES = """
    WITH recent AS (
        SELECT effect.handler AS what, effect.at, event.occurred_at
          FROM (SELECT * FROM shop.effects ORDER BY seq DESC LIMIT %(recent)s) AS effect
          JOIN {schema}.outbox_events AS event ON event.id = effect.event_id
        UNION ALL
        SELECT sent.notification_type, sent.sent_at, event.occurred_at
          FROM (SELECT * FROM shop.order_notifications
                 ORDER BY sent_at DESC LIMIT %(recent)s) AS sent
          JOIN shop.payments AS payment USING (order_id)
          JOIN {schema}.outbox_events AS event ON event.id = payment.event_id
    )
    SELECT what,
           percentile_cont(0.50) WITHIN GROUP (ORDER BY at - occurred_at),
           percentile_cont(0.99) WITHIN GROUP (ORDER BY at - occurred_at),
           count(*) FILTER (WHERE at > clock_timestamp() - interval '5 seconds') / 5.0
      FROM recent
     GROUP BY what
"""

MEASURED = {
    "payment.mark_paid": "orders_paid",
    "payment.process": "payments_processed",
    "stock.reserve": "stock_reserved",
    "stock.commit": "stock_sold",
    "email:payment_success": "emails_sent",
    "email:order_confirmation": "confirmations_sent",
    "whatsapp:payment_success": "whatsapp_sent",
    "push:shipped": "push_sent",
    "shipping.request_pickup": "shipments_requested",
    "analytics.count_sales": "sales_counted",
}
"""The flow by what its effects are called in the shop's tables."""


class Speed(Struct, frozen=True, kw_only=True):
    """From the commit of the event, or of the payment, to the effect; and effects a second."""

    p50_seconds: float
    p99_seconds: float
    rate: float


def measure(connection: psycopg.Connection, schema: str) -> dict[str, Speed]:
    """The recent work of every flow that has done any, by its name."""
    query = sql.SQL(LATENCIES).format(schema=sql.Identifier(schema))
    return {
        MEASURED[what]: Speed(
            p50_seconds=p50.total_seconds(), p99_seconds=p99.total_seconds(), rate=float(rate)
        )
        for what, p50, p99, rate in connection.execute(query, {"recent": RECENT})
        if what in MEASURED
    }
