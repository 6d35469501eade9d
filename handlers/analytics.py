"""Daily sales: an increment, so a counter that a repeated event would falsify."""

from psycopg import AsyncConnection

from handlers.effects import record_effects_async
from handlers.events import PaymentSucceeded
from outboxd import Event, Reject

COUNT_SALES = "analytics.count_sales"
"""This handler's name in the configuration."""

# By day and currency, so that two batches never wait for each other. What is not counted comes
# back: the order that it names is not known.
ADD_SALES = """
    WITH told AS (
        SELECT *
          FROM unnest(%(order_ids)s::uuid[], %(paid_at)s::timestamptz[], %(amounts)s::bigint[])
            AS told (order_id, paid_at, amount)
    ), counted AS (
        INSERT INTO shop.daily_sales (day, currency, orders, total_minor)
        SELECT (told.paid_at AT TIME ZONE 'UTC')::date, orders.currency, count(*), sum(told.amount)
          FROM told
          JOIN shop.orders ON orders.id = told.order_id
         GROUP BY 1, 2
         ORDER BY 1, 2
        ON CONFLICT (day, currency) DO UPDATE
            SET orders = daily_sales.orders + excluded.orders,
                total_minor = daily_sales.total_minor + excluded.total_minor
    )
    SELECT order_id
      FROM told
     WHERE NOT EXISTS (SELECT FROM shop.orders WHERE orders.id = told.order_id)
"""


async def count_sales(events: list[Event[PaymentSucceeded]], tx: AsyncConnection) -> None:
    """Add what was paid to the sales of the day (in UTC) on which it was, in the order's currency.

    It is the money received that is counted, each payment by itself: one that is given back later,
    or that does not fit its order, was received as well. Refunds are counted where they are made.
    To count only what `mark_paid` accepts, this handler would have to wait for that one.

    A payment of an order that is not known fails the batch. Then each is called alone, and this one
    is rejected.
    """
    # The ledger first: the counters are a few rows for everybody, locked from here to the commit.
    await record_effects_async(tx, [event.id for event in events], COUNT_SALES)
    payments = [event.payload for event in events]
    sales = {
        "order_ids": [payment.order_id for payment in payments],
        "paid_at": [payment.paid_at for payment in payments],
        "amounts": [payment.paid_amount for payment in payments],
    }
    unknown = await (await tx.execute(ADD_SALES, sales)).fetchall()
    if unknown:
        raise Reject("there is no order " + ", ".join(str(order_id) for (order_id,) in unknown))
