"""Daily sales."""

from datetime import UTC, date, datetime, timedelta, timezone
from uuid import uuid4

import psycopg

from handlers.analytics import count_order
from handlers.events import OrderCreated
from outboxd import Event
from tests.shop.customers import an_event

NEW_YEAR_IN_SINGAPORE = datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=8)))


def an_order(total: int, occurred_at: datetime) -> Event[OrderCreated]:
    payload = OrderCreated(order_id=uuid4(), customer_id=uuid4(), total=total, currency="SGD")
    return an_event(payload, occurred_at)


async def test_orders_are_counted_by_the_day_in_utc_on_which_they_were_made(
    shop_database: str,
) -> None:
    sales = [
        an_order(1000, NEW_YEAR_IN_SINGAPORE),
        an_order(500, datetime(2025, 12, 31, 23, 59, tzinfo=UTC)),
        an_order(70, datetime(2026, 1, 1, tzinfo=UTC)),
    ]
    async with await psycopg.AsyncConnection.connect(shop_database) as connection:
        for sale in sales:
            await count_order(sale, connection)
        counted = await connection.execute(
            "SELECT day, orders, total_minor FROM shop.daily_sales ORDER BY day"
        )

        assert await counted.fetchall() == [
            (date(2025, 12, 31), 2, 1500),
            (date(2026, 1, 1), 1, 70),
        ]
        ledger = await connection.execute("SELECT event_id, handler FROM shop.effects ORDER BY seq")
        assert await ledger.fetchall() == [(sale.id, "analytics.count_order") for sale in sales]
