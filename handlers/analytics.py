"""Daily sales: an increment, so a counter that a repeated event would falsify."""

from datetime import UTC

from psycopg import AsyncConnection

from handlers.effects import record_effect_async
from handlers.events import OrderCreated
from outboxd import Event

COUNT_ORDER = "analytics.count_order"
"""This handler's name in the configuration."""

ADD_SALE = """
    INSERT INTO shop.daily_sales (day, currency, orders, total_minor)
    VALUES (%(day)s, %(currency)s, 1, %(total)s)
    ON CONFLICT (day, currency) DO UPDATE
        SET orders = daily_sales.orders + 1,
            total_minor = daily_sales.total_minor + excluded.total_minor
"""


async def count_order(event: Event[OrderCreated], tx: AsyncConnection) -> None:
    """Add the order to the sales of the day (in UTC) on which it was made."""
    # The ledger first: the counter is one row for everybody, locked from here to the commit.
    await record_effect_async(tx, event.id, COUNT_ORDER)
    sale = {
        "day": event.occurred_at.astimezone(UTC).date(),
        "currency": event.payload.currency,
        "total": event.payload.total,
    }
    await tx.execute(ADD_SALE, sale)
