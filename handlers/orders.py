"""The checkout's core: an order, its lines and the event that tells of it, all or nothing; and the
end of an order that nobody wants any more."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID, uuid4

import psycopg
from msgspec import Meta, Struct

from handlers.events import VISIBLE, Currency, OrderCancelled, OrderCreated, Sku, order_event
from handlers.prices import check_prices
from handlers.refunds import ORDER_CANCELLED, owe_refund
from outboxd import publish

INSERT_ORDER = """
    INSERT INTO shop.orders (id, customer_id, currency, total_minor, idempotency_key)
    VALUES (%(order_id)s, %(customer_id)s, %(currency)s, %(total)s, %(idempotency_key)s)
    ON CONFLICT (idempotency_key) DO NOTHING
    RETURNING id
"""

INSERT_LINE = """
    INSERT INTO shop.order_items (order_id, line, sku, quantity, unit_price_minor)
    VALUES (%s, %s, %s, %s, %s)
"""

FIND_BY_KEY = "SELECT id, customer_id, currency FROM shop.orders WHERE idempotency_key = %s"

FIND_LINES = """
    SELECT sku, quantity, unit_price_minor
      FROM shop.order_items
     WHERE order_id = %s
     ORDER BY line
"""

LOCK_ORDER = "SELECT status, paid_by FROM shop.orders WHERE id = %s FOR UPDATE"

CANCEL_ORDER = "UPDATE shop.orders SET status = 'cancelled' WHERE id = %s"


class Line(Struct, frozen=True):
    """So many of one article, at the price that the customer saw, in the minor unit."""

    sku: Sku
    quantity: Annotated[int, Meta(gt=0, le=100)]
    unit_price: Annotated[int, Meta(ge=0, le=10**8)]


class Checkout(Struct, frozen=True, kw_only=True):
    """What a customer sends; a browser that sends it again uses the same `idempotency_key`."""

    customer_id: UUID
    currency: Currency
    lines: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=100)]
    idempotency_key: Annotated[str, Meta(pattern=VISIBLE, max_length=255)]

    @property
    def total(self) -> int:
        """The sum of the lines, in the currency's minor unit."""
        return sum(line.quantity * line.unit_price for line in self.lines)


class KeyReused(Exception):
    """The idempotency key belongs to another checkout; send this one with a key of its own."""


class UnknownOrder(Exception):
    """No such order (yet)."""


def create_order(connection: psycopg.Connection, checkout: Checkout) -> UUID:
    """Store the order and publish `order.created` in one transaction; the order's id.

    A repeated checkout gets the id of the order that it made, at the prices of then, and publishes
    nothing. Raises `KeyReused` when the key belongs to another checkout, and what `check_prices`
    raises when an article costs something else by now or is not for sale.
    """
    with connection.transaction():
        order_id = _insert(connection, checkout)
        if order_id is None:
            return _order_of(connection, checkout)
        seen = [(line.sku, line.unit_price) for line in checkout.lines]
        check_prices(connection, checkout.currency, seen)
        _insert_lines(connection, order_id, checkout.lines)
        created = OrderCreated(
            order_id=order_id,
            customer_id=checkout.customer_id,
            total=checkout.total,
            currency=checkout.currency,
        )
        publish(connection, order_event(created))
        return order_id


def cancel_order(connection: psycopg.Connection, order_id: UUID, reason: str) -> bool:
    """End a pending or paid order and publish `order.cancelled` in one transaction; what was paid
    for it has to be given back. Whether that is news. Raises `UnknownOrder`."""
    with connection.transaction():
        row = connection.execute(LOCK_ORDER, (order_id,)).fetchone()
        if row is None:
            raise UnknownOrder(f"there is no order {order_id}")
        status, paid_by = row
        if status == "cancelled":
            return False
        connection.execute(CANCEL_ORDER, (order_id,))
        publish(connection, order_event(OrderCancelled(order_id=order_id, reason=reason)))
        if paid_by is not None:
            owe_refund(connection, paid_by, ORDER_CANCELLED)
        return True


def _insert(connection: psycopg.Connection, checkout: Checkout) -> UUID | None:
    """The new order's id, or None when the key is taken, also by a checkout running beside us."""
    parameters = {
        "order_id": uuid4(),
        "customer_id": checkout.customer_id,
        "currency": checkout.currency,
        "total": checkout.total,
        "idempotency_key": checkout.idempotency_key,
    }
    row = connection.execute(INSERT_ORDER, parameters).fetchone()
    return None if row is None else row[0]


def _insert_lines(connection: psycopg.Connection, order_id: UUID, lines: Sequence[Line]) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            INSERT_LINE,
            [
                (order_id, number, line.sku, line.quantity, line.unit_price)
                for number, line in enumerate(lines, start=1)
            ],
        )


def _order_of(connection: psycopg.Connection, checkout: Checkout) -> UUID:
    """The order that this checkout made before. Raises `KeyReused`."""
    order_id: UUID
    ((order_id, *known),) = connection.execute(FIND_BY_KEY, (checkout.idempotency_key,)).fetchall()
    lines = tuple(Line(*row) for row in connection.execute(FIND_LINES, (order_id,)))
    if known != [checkout.customer_id, checkout.currency] or lines != checkout.lines:
        raise KeyReused(
            f"the idempotency key {checkout.idempotency_key!r} belongs to another checkout"
        )
    return order_id
