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

# The prices are those of the order. An article that has left the catalogue is called by its SKU.
FIND_ITEMS = """
    SELECT coalesce(products.name, order_items.sku) AS name, order_items.sku,
           order_items.quantity, order_items.unit_price_minor AS unit_price
      FROM shop.order_items
      LEFT JOIN shop.products ON products.sku = order_items.sku
     WHERE order_items.order_id = %s
     ORDER BY order_items.line
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
