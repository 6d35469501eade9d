"""The checkout's core: an order, its lines and the event that tells of it, all or nothing."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID, uuid4

import psycopg
from msgspec import Meta, Struct

from handlers.events import ORDER, ORDER_CREATED, Currency, Minor, OrderCreated
from outboxd import NewEvent, publish

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

FIND_BY_KEY = """
    SELECT id, customer_id, currency, total_minor
      FROM shop.orders
     WHERE idempotency_key = %s
"""


class Line(Struct, frozen=True):
    """So many of one article, at the price that the customer saw."""

    sku: str
    quantity: Annotated[int, Meta(gt=0)]
    unit_price: Minor


class Checkout(Struct, frozen=True, kw_only=True):
    """What a customer sends; a browser that sends it again uses the same `idempotency_key`."""

    customer_id: UUID
    currency: Currency
    lines: tuple[Line, ...]
    idempotency_key: str

    @property
    def total(self) -> int:
        """The sum of the lines, in the currency's minor unit."""
        return sum(line.quantity * line.unit_price for line in self.lines)


class KeyReused(Exception):
    """The idempotency key belongs to another checkout; send this one with a key of its own."""


def create_order(connection: psycopg.Connection, checkout: Checkout) -> UUID:
    """Store the order and publish `order.created` in one transaction; the order's id.

    A repeated checkout gets the id of the order that it made, and publishes nothing. Raises
    `KeyReused` when the key belongs to a checkout of another customer or another amount.
    """
    with connection.transaction():
        order_id = _insert(connection, checkout)
        if order_id is None:
            return _order_of(connection, checkout)
        _insert_lines(connection, order_id, checkout.lines)
        created = OrderCreated(
            order_id=order_id,
            customer_id=checkout.customer_id,
            total=checkout.total,
            currency=checkout.currency,
        )
        event = NewEvent(
            type=ORDER_CREATED, aggregate_type=ORDER, aggregate_id=str(order_id), payload=created
        )
        publish(connection, event)
        return order_id


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
    order_id: UUID
    ((order_id, *known),) = connection.execute(FIND_BY_KEY, (checkout.idempotency_key,)).fetchall()
    if known != [checkout.customer_id, checkout.currency, checkout.total]:
        raise KeyReused(
            f"the idempotency key {checkout.idempotency_key!r} belongs to another checkout"
        )
    return order_id
