"""The payments that the gateway has reported: each is stored and told of once."""

from uuid import UUID, uuid4

import psycopg

from handlers.events import PaymentSucceeded, order_event
from handlers.orders import UnknownOrder
from handlers.webhooks import GatewayPayment, WebhookReplayed
from outboxd import NewEvent, publish

# Whichever of the two ids is taken: a copy that is stored at this moment is waited for.
INSERT_PAYMENT = """
    INSERT INTO shop.payments (
        id, event_id, order_id, transaction_id, gateway_event_id, amount_minor, currency, paid_at
    )
    VALUES (
        %(payment_id)s, %(event_id)s, %(order_id)s, %(transaction_id)s, %(gateway_event_id)s,
        %(amount)s, %(currency)s, %(paid_at)s
    )
    ON CONFLICT DO NOTHING
    RETURNING id
"""

FIND_PAYMENTS = """
    SELECT order_id, transaction_id, amount_minor, currency
      FROM shop.payments
     WHERE gateway_event_id = %s
        OR transaction_id = %s
"""


def store_payment(
    connection: psycopg.Connection, payment: GatewayPayment, gateway_event_id: str
) -> UUID | None:
    """Store the payment and publish `payment.succeeded`, in the caller's transaction; that event's
    id, or None when the payment is there already.

    Raises `UnknownOrder` and `WebhookReplayed`.
    """
    event = _succeeded(payment)
    if not _insert(connection, payment, gateway_event_id, event):
        _check_same(connection, payment, gateway_event_id)
        return None
    return publish(connection, event)


def _succeeded(payment: GatewayPayment) -> NewEvent:
    return order_event(
        PaymentSucceeded(
            order_id=payment.order_id,
            payment_id=uuid4(),
            transaction_id=payment.transaction_id,
            paid_amount=payment.amount,
            paid_at=payment.paid_at,
        )
    )


def _insert(
    connection: psycopg.Connection,
    payment: GatewayPayment,
    gateway_event_id: str,
    event: NewEvent,
) -> bool:
    parameters = {
        "payment_id": event.payload.payment_id,
        "event_id": event.id,
        "order_id": payment.order_id,
        "transaction_id": payment.transaction_id,
        "gateway_event_id": gateway_event_id,
        "amount": payment.amount,
        "currency": payment.currency,
        "paid_at": payment.paid_at,
    }
    try:
        return connection.execute(INSERT_PAYMENT, parameters).fetchone() is not None
    except psycopg.errors.ForeignKeyViolation as error:
        raise UnknownOrder(f"there is no order {payment.order_id}") from error


def _check_same(
    connection: psycopg.Connection, payment: GatewayPayment, gateway_event_id: str
) -> None:
    """That what is stored under these ids is this payment. Raises `WebhookReplayed`.

    Whose money and how much is compared, and not the bytes: gateways also count their attempts in
    the body.
    """
    ids = (gateway_event_id, payment.transaction_id)
    stored = connection.execute(FIND_PAYMENTS, ids).fetchall()
    told = (payment.order_id, payment.transaction_id, payment.amount, payment.currency)
    if stored != [told]:
        raise WebhookReplayed(
            f"the gateway's event {gateway_event_id} or transaction {payment.transaction_id} "
            "is known, and says something else"
        )
