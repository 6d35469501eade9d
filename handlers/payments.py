"""Payments: what the gateway reports is stored, pays its order, and starts what follows."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import assert_never
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from handlers.decisions import (
    AlreadyPaid,
    Bill,
    GiveBack,
    Mismatch,
    Pay,
    Payment,
    Proceed,
    Progress,
    Settled,
    Wait,
    judge,
    next_step,
)
from handlers.effects import record_effect
from handlers.events import (
    GENERATE_INVOICE_PDF,
    PROCESS_PAYMENT,
    SEND_CONFIRMATION_EMAIL,
    GenerateInvoicePdf,
    NotificationRequested,
    PaymentSucceeded,
    ProcessPayment,
    SendConfirmationEmail,
    order_event,
)
from handlers.orders import UnknownOrder
from handlers.receipts import store_payment
from handlers.refunds import owe_refund
from handlers.waiting import later
from handlers.webhooks import (
    WINDOW_SECONDS,
    GatewayPayment,
    SignatureInvalid,
    WebhookExpired,
    WebhookMalformed,
    WebhookRefused,
    WebhookReplayed,
    read_report,
    verify,
)
from outboxd import Context, Event, NewJob, Reject, enqueue, publish

__all__ = [
    "GatewayPayment",
    "Receipt",
    "SignatureInvalid",
    "UnknownOrder",
    "WebhookExpired",
    "WebhookMalformed",
    "WebhookRefused",
    "WebhookReplayed",
    "mark_paid",
    "process_payment",
    "receive_webhook",
]

MARK_PAID = "payment.mark_paid"
PROCESS = "payment.process"
"""These handlers' names in the configuration."""

# Only the order is locked: whoever changes it, and whoever else brings a payment, waits here.
LOCK_BILL = """
    SELECT orders.status, orders.total_minor, orders.currency, orders.paid_by, payments.currency
      FROM shop.orders
      LEFT JOIN shop.payments ON payments.id = %(payment_id)s
     WHERE orders.id = %(order_id)s
       FOR UPDATE OF orders
"""

PAY_ORDER = """
    UPDATE shop.orders
       SET status = 'paid', paid_at = %(paid_at)s, paid_by = %(payment_id)s
     WHERE id = %(order_id)s
"""

LOCK_PROGRESS = """
    SELECT payments.id AS payment_id, payments.amount_minor AS amount, payments.applied_at,
           EXISTS (SELECT FROM shop.refunds WHERE payment_id = payments.id) AS refunded,
           orders.id AS order_id, orders.customer_id, orders.total_minor AS total, orders.status,
           orders.paid_by
      FROM shop.payments
      JOIN shop.orders ON orders.id = payments.order_id
     WHERE payments.event_id = %s
       FOR UPDATE OF payments
"""

APPLY_PAYMENT = "UPDATE shop.payments SET applied_at = clock_timestamp() WHERE id = %s"


class Receipt(Enum):
    """What a report was to us; both are a success."""

    NEW = "new"
    DUPLICATE = "duplicate"


def receive_webhook(
    connection: psycopg.Connection,
    headers: Mapping[str, str],
    body: bytes,
    *,
    secret: str,
    now: datetime,
    window: float = WINDOW_SECONDS,
) -> Receipt:
    """Store what the gateway reports, `payment.succeeded` and the job `process_payment` in one
    transaction. A report that comes again is a success, and publishes nothing.

    Raises `SignatureInvalid`, `WebhookExpired`, `WebhookMalformed` and `WebhookReplayed`, all of
    them a `WebhookRefused`, and `UnknownOrder`; each leaves nothing behind. `body` is what came
    over the wire, byte for byte: it is what was signed.
    """
    verify(headers, body, secret=secret, now=now, window=window)
    report = read_report(body, latest=now + timedelta(seconds=window))
    with connection.transaction():
        event_id = store_payment(connection, report, report.event_id)
        if event_id is None:
            return Receipt.DUPLICATE
        enqueue(connection, NewJob(PROCESS_PAYMENT, ProcessPayment(event_id=event_id)))
        return Receipt.NEW


def mark_paid(event: Event[PaymentSucceeded], tx: psycopg.Connection) -> None:
    """Turn the order from pending to paid; a payment that it has no use for is to be given back."""
    payment = event.payload
    bill, currency = _lock_bill(tx, payment)
    match judge(bill, Payment(payment.payment_id, payment.paid_amount, currency)):
        case Pay():
            tx.execute(
                PAY_ORDER,
                {
                    "paid_at": payment.paid_at,
                    "payment_id": payment.payment_id,
                    "order_id": payment.order_id,
                },
            )
        case GiveBack(reason=reason):
            owe_refund(tx, payment.payment_id, reason)
        case AlreadyPaid():
            return
        case Mismatch(explanation=explanation):
            raise Reject(
                f"payment {payment.payment_id} does not fit order {payment.order_id}: {explanation}"
            )
        case verdict:
            assert_never(verdict)
    record_effect(tx, event.id, MARK_PAID)


def process_payment(job: Event[ProcessPayment], tx: psycopg.Connection, context: Context) -> None:
    """Start what follows from a payment, once `mark_paid` has found that it pays its order.

    The two come on different queues, so this one may be too early; it waits its turn. If its turn
    never comes it is dead-lettered with the reason, beside the payment that was not accepted.
    """
    progress = _lock_progress(tx, job.payload.event_id)
    if progress is None:
        raise later(f"there is no payment of event {job.payload.event_id}", context)
    match next_step(progress):
        case Proceed():
            tx.execute(APPLY_PAYMENT, (progress.payment_id,))
            _start_what_follows(tx, progress.order_id, progress.customer_id)
            record_effect(tx, job.id, PROCESS)
        case Settled():
            return
        case Wait(explanation=explanation):
            raise later(explanation, context)
        case step:
            assert_never(step)


def _lock_bill(tx: psycopg.Connection, payment: PaymentSucceeded) -> tuple[Bill, str | None]:
    """The order, and the currency of the payment. Raises `UnknownOrder`."""
    parameters = {"payment_id": payment.payment_id, "order_id": payment.order_id}
    row = tx.execute(LOCK_BILL, parameters).fetchone()
    if row is None:
        # Not a Reject: the order may be in a database that was just restored, or not replicated.
        raise UnknownOrder(f"there is no order {payment.order_id}")
    *bill, currency = row
    return Bill(*bill), currency


def _lock_progress(tx: psycopg.Connection, event_id: UUID) -> Progress | None:
    with tx.cursor(row_factory=class_row(Progress)) as cursor:
        return cursor.execute(LOCK_PROGRESS, (event_id,)).fetchone()


def _start_what_follows(tx: psycopg.Connection, order_id: UUID, customer_id: UUID) -> None:
    enqueue(tx, NewJob(GENERATE_INVOICE_PDF, GenerateInvoicePdf(order_id=order_id)))
    enqueue(tx, NewJob(SEND_CONFIRMATION_EMAIL, SendConfirmationEmail(order_id=order_id)))
    told = NotificationRequested(
        channel="whatsapp", template="payment_success", customer_id=customer_id, order_id=order_id
    )
    publish(tx, order_event(told))
