"""The checkout's core: an order, its lines and the event that tells of it, all or nothing; and the
end of an order that nobody wants any more."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated
from uuid import UUID, uuid4

import msgspec
import psycopg
from msgspec import Meta, Struct

from handlers.events import VISIBLE, Currency, OrderCancelled, OrderCreated, Sku, order_event
from handlers.prices import check_prices
from handlers.refunds import ORDER_CANCELLED, UnknownPayment, owe_refund
from outboxd import publish

INSERT_ORDER = """
    INSERT INTO shop.orders (id, customer_id, currency, total_minor, idempotency_key)
    VALUES (%(order_id)s, %(customer_id)s, %(currency)s, %(total)s, %(idempotency_key)s)
    ON CONFLICT (customer_id, idempotency_key) DO NOTHING
    RETURNING id
"""

# With the article's name of this moment: it may be called something else on the day of the invoice.
INSERT_LINE = """
    INSERT INTO shop.order_items (order_id, line, sku, quantity, unit_price_minor, name)
    SELECT %(order_id)s, %(line)s, sku, %(quantity)s, %(unit_price)s, name
      FROM shop.products
     WHERE sku = %(sku)s
"""

# Of this customer alone: what keys others have used is nobody's business.
FIND_BY_KEY = """
    SELECT id, currency
      FROM shop.orders
     WHERE customer_id = %s
       AND idempotency_key = %s
"""

FIND_LINES = """
    SELECT sku, quantity, unit_price_minor
      FROM shop.order_items
     WHERE order_id = %s
     ORDER BY line
"""

LOCK_ORDER = "SELECT status, paid_by FROM shop.orders WHERE id = %s FOR UPDATE"

FIND_SHIPMENT = "SELECT tracking_number FROM shop.shipments WHERE order_id = %s"

FIND_PAYMENTS = "SELECT id FROM shop.payments WHERE order_id = %s ORDER BY received_at, id"

CANCEL_ORDER = "UPDATE shop.orders SET status = 'cancelled' WHERE id = %s"


MOST_PIECES = 100
"""Of one article in an order, over all of its lines: what is ordered is set aside before it is paid
for, and nobody sets aside everything."""


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """So many of one article, at the price that the customer saw, in the minor unit."""

    sku: Sku
    quantity: Annotated[int, Meta(gt=0, le=100)]
    unit_price: Annotated[int, Meta(ge=0, le=10**8)]


class Checkout(Struct, frozen=True, kw_only=True):
    """What a customer sends; a browser that sends it again uses the same `idempotency_key`, which
    is one among this customer's own."""

    customer_id: UUID
    currency: Currency
    lines: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=100)]
    idempotency_key: Annotated[str, Meta(pattern=VISIBLE, max_length=255)]

    @property
    def total(self) -> int:
        """The sum of the lines, in the currency's minor unit."""
        return sum(line.quantity * line.unit_price for line in self.lines)


class KeyReused(Exception):
    """The customer has used this key for another checkout; send this one with a key of its own."""


class TooManyPieces(Exception):
    """More of one article than an order may have; the customer has to order fewer."""


class NothingToPay(Exception):
    """The order costs nothing. No gateway reports a payment of nothing, so it would stay unpaid."""


class UnknownOrder(Exception):
    """No such order (yet)."""


class InDelivery(Exception):
    """The courier has the order, or may have it: it cannot be cancelled any more, or not yet."""


def create_order(connection: psycopg.Connection, checkout: Checkout) -> UUID:
    """Store the order and publish `order.created` in one transaction; the order's id.

    A repeated checkout gets the id of the order that it made, at the prices of then, and publishes
    nothing. Raises `KeyReused` when the key belongs to another checkout; what `check_prices`
    raises when an article costs something else by now or is not for sale; `TooManyPieces` and
    `NothingToPay`.
    """
    with connection.transaction():
        order_id = _insert(connection, checkout)
        if order_id is None:
            return _order_of(connection, checkout)
        seen = [(line.sku, line.unit_price) for line in checkout.lines]
        check_prices(connection, checkout.currency, seen)
        _check_sellable(checkout)
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
    """End a pending or paid order and publish `order.cancelled` in one transaction; every payment
    that came for it has to be given back, also one that did not fit. Whether that is news.

    Raises `UnknownOrder`; `InDelivery` from the moment on in which the courier is about to be
    called, since nobody can have both the money and the parcel; `UnknownPayment` if the order is
    paid by what is not stored; and msgspec.ValidationError for a reason that no event can carry.
    """
    cancelled = order_event(OrderCancelled(order_id=order_id, reason=reason))
    with connection.transaction():
        row = connection.execute(LOCK_ORDER, (order_id,)).fetchone()
        if row is None:
            raise UnknownOrder(f"there is no order {order_id}")
        status, paid_by = row
        if status == "cancelled":
            return False
        # After the lock, and in statements of their own: what was committed meanwhile is seen.
        _check_not_in_delivery(connection, order_id)
        payments = _payments_of(connection, order_id)
        if status == "paid" and (not payments or paid_by not in (None, *payments)):
            raise UnknownPayment(f"order {order_id} is paid by {paid_by}, which is not stored")
        connection.execute(CANCEL_ORDER, (order_id,))
        publish(connection, cancelled)
        for payment_id in payments:
            owe_refund(connection, payment_id, ORDER_CANCELLED)
        return True


def _check_not_in_delivery(connection: psycopg.Connection, order_id: UUID) -> None:
    row = connection.execute(FIND_SHIPMENT, (order_id,)).fetchone()
    if row is None:
        return
    (tracking_number,) = row
    if tracking_number is None:
        raise InDelivery(
            f"the courier is asked to fetch order {order_id} and has not answered yet: try again "
            "when it has"
        )
    raise InDelivery(
        f"the courier has order {order_id} as {tracking_number}: what comes back is a return"
    )


def _payments_of(connection: psycopg.Connection, order_id: UUID) -> list[UUID]:
    rows = connection.execute(FIND_PAYMENTS, (order_id,)).fetchall()
    return [payment_id for (payment_id,) in rows]


def _check_sellable(checkout: Checkout) -> None:
    """Raises `TooManyPieces` and `NothingToPay`; at prices that are known to be right."""
    pieces: Counter[str] = Counter()
    for line in checkout.lines:
        pieces[line.sku] += line.quantity
    too_many = sorted(sku for sku, wanted in pieces.items() if wanted > MOST_PIECES)
    if too_many:
        raise TooManyPieces(f"at most {MOST_PIECES} in an order: {', '.join(too_many)}")
    if checkout.total == 0:
        raise NothingToPay("an order that costs nothing cannot be paid")


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
                {"order_id": order_id, "line": number, **msgspec.structs.asdict(line)}
                for number, line in enumerate(lines, start=1)
            ],
        )


def _order_of(connection: psycopg.Connection, checkout: Checkout) -> UUID:
    """The order that this checkout made before. Raises `KeyReused`."""
    order_id: UUID
    key = (checkout.customer_id, checkout.idempotency_key)
    ((order_id, currency),) = connection.execute(FIND_BY_KEY, key).fetchall()
    lines = tuple(Line(*row) for row in connection.execute(FIND_LINES, (order_id,)))
    if currency != checkout.currency or lines != checkout.lines:
        raise KeyReused(
            f"the idempotency key {checkout.idempotency_key!r} belongs to another checkout"
        )
    return order_id
