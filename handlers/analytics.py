"""Daily sales: an increment, so a counter that a repeated event would falsify."""

from psycopg import AsyncConnection

from handlers.effects import record_effects_async
from handlers.events import PaymentSucceeded
from handlers.refunds import UnknownPayment
from outboxd import Event

COUNT_SALES = "analytics.count_sales"
"""This handler's name in the configuration."""

# By day and currency, so that two batches never wait for each other. What is not counted comes
# back: the payment that it names is not known.
ADD_SALES = """
    WITH told AS (
        SELECT unnest(%(payment_ids)s::uuid[]) AS payment_id
    ), counted AS (
        INSERT INTO shop.daily_sales (day, currency, orders, total_minor)
        SELECT (payments.paid_at AT TIME ZONE 'UTC')::date, payments.currency, count(*),
               sum(payments.amount_minor)
          FROM told
          JOIN shop.payments ON payments.id = told.payment_id
         GROUP BY 1, 2
         ORDER BY 1, 2
        ON CONFLICT (day, currency) DO UPDATE
            SET orders = daily_sales.orders + excluded.orders,
                total_minor = daily_sales.total_minor + excluded.total_minor
    )
    SELECT payment_id
      FROM told
     WHERE NOT EXISTS (SELECT FROM shop.payments WHERE payments.id = told.payment_id)
"""


async def count_sales(events: list[Event[PaymentSucceeded]], tx: AsyncConnection) -> None:
    """Add what was paid to the sales of the day (in UTC) on which it was, in the payment's own
    currency, which need not be the order's.

    It is the money received that is counted, each payment by itself and as it was stored: one that
    is given back later, or that does not fit its order, was received as well. Refunds are counted
    where they are made. To count only what `mark_paid` accepts, this handler would have to wait for
    that one.

    A payment that is not stored fails the batch. Then each is called alone, and this one is tried
    again, as it may be in a database that was just restored.
    """
    # The ledger first: the counters are a few rows for everybody, locked from here to the commit.
    await record_effects_async(tx, [event.id for event in events], COUNT_SALES)
    told = {"payment_ids": [event.payload.payment_id for event in events]}
    unknown = await (await tx.execute(ADD_SALES, told)).fetchall()
    if unknown:
        raise UnknownPayment("there is no payment " + ", ".join(str(each) for (each,) in unknown))
