"""Orders, their lines and payments, as an invoice needs them."""

from uuid import UUID

import psycopg
from psycopg.rows import class_row, dict_row

from handlers.connections import shop_pool
from handlers.invoices.decisions import Order
from handlers.invoices.invoice import Item

FIND = """
    SELECT orders.id AS order_id, orders.customer_id, orders.status, orders.currency,
           orders.total_minor AS total, orders.created_at AS ordered_at, orders.paid_at,
           orders.paid_by, payments.transaction_id
      FROM shop.orders
      LEFT JOIN shop.payments ON payments.id = orders.paid_by
     WHERE orders.id = %s
"""

# Names and prices are those of the order, so that an invoice stays what it was. A line without a
# name comes from a checkout of before names were stored: its article is called by its SKU, which
# does not change.
FIND_ITEMS = """
    SELECT coalesce(name, sku) AS name, sku, quantity, unit_price_minor AS unit_price
      FROM shop.order_items
     WHERE order_id = %s
     ORDER BY line
"""


class Orders:
    """Reads the shop's database; may be used by several threads at a time."""

    def __init__(self, database_url: str, name: str) -> None:
        """`name` is what the database is told of who asks."""
        self._pool = shop_pool(database_url, name)

    def find(self, order_id: UUID) -> Order | None:
        """The order as it is now; None if there is none. No transaction is left open."""
        with self._pool.connection() as connection:
            return _find(connection, order_id)

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()


def _find(connection: psycopg.Connection, order_id: UUID) -> Order | None:
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(FIND, (order_id,)).fetchone()
    if found is None:
        return None
    with connection.cursor(row_factory=class_row(Item)) as cursor:
        items = cursor.execute(FIND_ITEMS, (order_id,)).fetchall()
    return Order(**found, items=tuple(items))
