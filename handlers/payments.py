"""Payments: what the gateway reports is stored, and marks the order as paid."""

from datetime import datetime
from typing import Annotated
from uuid import UUID, uuid4

import psycopg
from msgspec import Meta, Struct

from handlers.effects import record_effect
from handlers.events import ORDER, PAYMENT_SUCCEEDED, Currency, PaymentSucceeded, TransactionId
from outboxd import Event, NewEvent, Reject, publish

MARK_PAID = "payment.mark_paid"
"""This handler's name in the configuration."""

INSERT_PAYMENT = """
    INSERT INTO shop.payments (id, event_id, order_id, transaction_id, amount_minor, currency)
    VALUES (%(payment_id)s, %(event_id)s, %(order_id)s, %(transaction_id)s, %(amount)s,
            %(currency)s)
    ON CONFLICT (transaction_id) DO NOTHING
    RETURNING id
"""

LOCK_ORDER = "SELECT status, total_minor FROM shop.orders WHERE id = %s FOR UPDATE"

PAY_ORDER = "UPDATE shop.orders SET status = 'paid', paid_at = %s WHERE id = %s"

APPLY_PAYMENT = "UPDATE shop.payments SET applied_at = clock_timestamp() WHERE id = %s"


class GatewayPayment(Struct, frozen=True, kw_only=True):
    """A successful payment as the gateway reports it, as often as it likes."""

    order_id: UUID
    transaction_id: TransactionId
    amount: Annotated[int, Meta(gt=0, le=10**12)]
    currency: Currency
    paid_at: Annotated[datetime, Meta(tz=True)]


class UnknownOrder(Exception):
    """No such order (yet): tell the gateway to try again."""


def record_payment(connection: psycopg.Connection, payment: GatewayPayment) -> bool:
    """Store the payment and publish `payment.succeeded` in one transaction.

    Returns whether it was new: a transaction that is told again is a success, and publishes
    nothing. Raises `UnknownOrder`.
    """
    succeeded = PaymentSucceeded(
        order_id=payment.order_id,
        payment_id=uuid4(),
        transaction_id=payment.transaction_id,
        paid_amount=payment.amount,
        paid_at=payment.paid_at,
    )
    event = NewEvent(
        type=PAYMENT_SUCCEEDED,
        aggregate_type=ORDER,
        aggregate_id=str(payment.order_id),
        payload=succeeded,
    )
    with connection.transaction():
        if not _insert(connection, payment, succeeded.payment_id, event.id):
            return False
        publish(connection, event)
        return True


def mark_paid(event: Event[PaymentSucceeded], tx: psycopg.Connection) -> None:
    """Turn the order from pending to paid; anything that does not fit it needs a person."""
    payment = event.payload
    status, total = _lock_order(tx, payment.order_id)
    if status != "pending":
        raise Reject(
            f"order {payment.order_id} is {status}: give payment {payment.payment_id} back"
        )
    if payment.paid_amount != total:
        raise Reject(f"order {payment.order_id} costs {total}, and {payment.paid_amount} was paid")
    tx.execute(PAY_ORDER, (payment.paid_at, payment.order_id))
    tx.execute(APPLY_PAYMENT, (payment.payment_id,))
    record_effect(tx, event.id, MARK_PAID)


def _insert(
    connection: psycopg.Connection, payment: GatewayPayment, payment_id: UUID, event_id: UUID
) -> bool:
    parameters = {
        "payment_id": payment_id,
        "event_id": event_id,
        "order_id": payment.order_id,
        "transaction_id": payment.transaction_id,
        "amount": payment.amount,
        "currency": payment.currency,
    }
    try:
        return connection.execute(INSERT_PAYMENT, parameters).fetchone() is not None
    except psycopg.errors.ForeignKeyViolation as error:
        raise UnknownOrder(f"there is no order {payment.order_id}") from error


def _lock_order(tx: psycopg.Connection, order_id: UUID) -> tuple[str, int]:
    row = tx.execute(LOCK_ORDER, (order_id,)).fetchone()
    if row is None:
        # Not a Reject: the order may be in a database that was just restored, or not replicated.
        raise UnknownOrder(f"there is no order {order_id}")
    return row[0], row[1]
