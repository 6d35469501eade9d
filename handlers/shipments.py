"""Shipments: what the shop knows of a parcel before, while and after the courier is asked for it.

A row without a tracking number is an intent: it is committed before the courier is called, and from
then on `handlers.orders.cancel_order` refuses, under the same lock. So an order is either given
back or fetched, whatever becomes of the call, its answer and this process in between.
"""

from uuid import UUID, uuid4

import psycopg
from msgspec import Struct

from handlers.events import PaymentSucceeded
from handlers.stock.standings import Standing
from outboxd import Reject

# Written to and not only locked: a cancellation in REPEATABLE READ that has waited would get a mere
# lock, and then not see the intent in its older snapshot. So it fails, and is tried again.
LOCK_ORDER = """
    UPDATE shop.orders
       SET status = status
     WHERE id = %s
    RETURNING customer_id, status, paid_by
"""

FIND_STANDING = "SELECT state FROM shop.order_stock WHERE order_id = %s"

FIND_FETCHED = """
    SELECT EXISTS (
        SELECT FROM shop.shipments WHERE order_id = %s AND tracking_number IS NOT NULL
    )
"""

INTEND = """
    INSERT INTO shop.shipments (id, order_id)
    VALUES (%s, %s)
    ON CONFLICT (order_id) DO UPDATE
        SET calls = shipments.calls + 1, requested_at = clock_timestamp()
"""

# An INSERT all the same: should somebody have deleted the intent, the parcel is known of again.
STORE_ANSWER = """
    INSERT INTO shop.shipments (id, order_id, tracking_number)
    VALUES (%(shipment_id)s, %(order_id)s, %(tracking_number)s)
    ON CONFLICT (order_id) DO UPDATE
        SET tracking_number = excluded.tracking_number
      WHERE shipments.tracking_number IS NULL
    RETURNING id
"""

# A second call may be under way, or an earlier one may have been accepted and its answer lost: then
# it is not known what the courier has.
WITHDRAW = """
    DELETE FROM shop.shipments WHERE order_id = %s AND tracking_number IS NULL AND calls = 1
"""

LONGEST_CALL = "10 minutes"
"""No call lasts that long: more than any `timeout_seconds` of the handler that makes it."""

GIVE_UP = """
    DELETE FROM shop.shipments
     WHERE order_id = %s
       AND tracking_number IS NULL
       AND requested_at < clock_timestamp() - %s::interval
"""


class NotPaidYet(Exception):
    """The order is not marked as paid: that comes soon, or the payment was refused."""


class NotSoldYet(Exception):
    """The order's goods are not taken off the shelf: that comes soon."""


class Needed(Struct, frozen=True):
    """The parcel of an order waits to be fetched."""

    customer_id: UUID


class NotNeeded(Struct, frozen=True):
    """Nothing is to be fetched, and why."""

    reason: str


class Parcel(Struct, frozen=True, kw_only=True):
    """An order as its shipment finds it; `standing` is its stock's, None before it has any."""

    customer_id: UUID
    status: str
    paid_by: UUID | None
    standing: Standing | None
    fetched: bool


def needed(payment: PaymentSucceeded, parcel: Parcel) -> Needed | NotNeeded:
    """Whether an order in this state is to be fetched for this payment.

    Raises NotPaidYet and NotSoldYet, and Reject when there is nothing to be fetched.
    """
    order_id = payment.order_id
    if parcel.fetched:
        return NotNeeded(f"order {order_id} has its shipment already")
    if parcel.status == "cancelled":
        return NotNeeded(f"order {order_id} is cancelled")
    if parcel.status != "paid":
        # A payment alone is not enough: its amount may be wrong, which payment.mark_paid finds out.
        raise NotPaidYet(
            f"order {order_id} is {parcel.status}: its payment has not been applied yet, "
            "or was refused"
        )
    if parcel.paid_by not in (None, payment.payment_id):
        return NotNeeded(f"order {order_id} is paid by another payment, {parcel.paid_by}")
    _check_sold(order_id, parcel.standing)
    return Needed(parcel.customer_id)


def intend(connection: psycopg.Connection, payment: PaymentSucceeded) -> Needed | NotNeeded:
    """Lock the order and, if it is to be fetched, store the intent, in the caller's transaction.

    Raises what `needed` raises, and Reject if there is no such order.
    """
    order_id = payment.order_id
    need = needed(payment, _lock_parcel(connection, order_id))
    if isinstance(need, Needed):
        connection.execute(INTEND, (uuid4(), order_id))
    return need


def store_answer(
    connection: psycopg.Connection, order_id: UUID, tracking_number: str
) -> UUID | None:
    """The courier has the order; the shipment's id if that is news."""
    parameters = {
        "shipment_id": uuid4(),
        "order_id": order_id,
        "tracking_number": tracking_number,
    }
    row = connection.execute(STORE_ANSWER, parameters).fetchone()
    return None if row is None else row[0]


def withdraw(connection: psycopg.Connection, order_id: UUID) -> bool:
    """The courier has refused: remove the intent if it says that nothing will be fetched, which the
    refusal of the only call does. Whether it is removed."""
    return connection.execute(WITHDRAW, (order_id,)).rowcount == 1


def give_up_pickup(connection: psycopg.Connection, order_id: UUID) -> bool:
    """For somebody who has asked the courier, and knows that it has nothing of this order: remove
    the intent, so that the order can be cancelled, or asked for anew by `outboxd dlq redrive`.

    False if there is none, the parcel is confirmed, or the last call was less than ten minutes ago
    and may still be under way.
    """
    return connection.execute(GIVE_UP, (order_id, LONGEST_CALL)).rowcount == 1


def _check_sold(order_id: UUID, standing: Standing | None) -> None:
    match standing:
        case Standing.SOLD:
            return
        case Standing.RELEASED:
            # It is paid and not cancelled: an order from before the shop counted its stock.
            return
        case None | Standing.NEW | Standing.RESERVED:
            raise NotSoldYet(f"the goods of order {order_id} are not taken off the shelf yet")
        case Standing.REJECTED:
            raise Reject(
                f"there was too little stock for order {order_id}, which is paid: cancel it, or "
                "bring in goods, call handlers.stock.reconsider and redrive this"
            )


def _lock_parcel(connection: psycopg.Connection, order_id: UUID) -> Parcel:
    """Raises Reject."""
    row = connection.execute(LOCK_ORDER, (order_id,)).fetchone()
    if row is None:
        raise Reject(f"there is no order {order_id}: nothing can be shipped")
    customer_id, status, paid_by = row
    # After the lock, and in statements of their own: what was committed meanwhile is seen.
    standing = connection.execute(FIND_STANDING, (order_id,)).fetchone()
    ((fetched,),) = connection.execute(FIND_FETCHED, (order_id,)).fetchall()
    return Parcel(
        customer_id=customer_id,
        status=status,
        paid_by=paid_by,
        standing=None if standing is None else Standing(standing[0]),
        fetched=fetched,
    )
