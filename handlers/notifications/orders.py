"""What is known of an order when its customer is told of it, and that they have been told."""

from uuid import UUID

from msgspec import Struct

from handlers.connections import shop_pool

FIND = """
    SELECT orders.id, orders.customer_id, orders.currency, orders.total_minor,
           shipments.tracking_number, order_notifications.sent_at IS NOT NULL
      FROM shop.orders
      LEFT JOIN shop.shipments ON shipments.order_id = orders.id
      LEFT JOIN shop.order_notifications
             ON order_notifications.order_id = orders.id
            AND order_notifications.notification_type = %(type)s
     WHERE orders.id = %(order_id)s
"""

MARK = """
    INSERT INTO shop.order_notifications (order_id, notification_type)
    VALUES (%s, %s)
    ON CONFLICT DO NOTHING
"""


class Order(Struct, frozen=True):
    """The facts that a template may tell; `total` is in the minor unit of `currency`.

    `told` says that this notification has been sent.
    """

    order_id: UUID
    customer_id: UUID
    currency: str
    total: int
    tracking_number: str | None
    told: bool


class Orders:
    """The orders and the marks of what has been sent; may be used by several threads at a time."""

    def __init__(self, database_url: str) -> None:
        self._pool = shop_pool(database_url, "notifications")

    def find(self, order_id: UUID, notification_type: str) -> Order | None:
        """The order as it is now; None if there is none."""
        parameters = {"order_id": order_id, "type": notification_type}
        with self._pool.connection() as connection:
            row = connection.execute(FIND, parameters).fetchone()
        return None if row is None else Order(*row)

    def mark(self, order_id: UUID, notification_type: str) -> None:
        """Remember that the customer has been told; committed when this returns."""
        with self._pool.connection() as connection:
            connection.execute(MARK, (order_id, notification_type))

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()
