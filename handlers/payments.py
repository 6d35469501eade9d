"""Payments: what the gateway reports is stored, pays its order, and starts what follows."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import assert_never
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from handlers.decisions import (
    AlreadyPaid,
    Bill,
    BillOnly,
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
from handlers.refunds import PAID_BY_ANOTHER, UnknownPayment, owe_refund
from handlers.waiting import later
from handlers.webhooks import (
    WINDOW_SECONDS,
    GatewayPayment,
    GatewayReport,
    OtherReport,
    SignatureInvalid,
    WebhookExpired,
    WebhookMalformed,
    WebhookRefused,
    WebhookReplayed,
    read_webhook,
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
    "store_report",
]

MARK_PAID = "payment.mark_paid"
PROCESS = "payment.process"
"""These handlers' names in the configuration."""

# Whoever changes the order, and whoever else brings a payment, waits here.
LOCK_BILL = """
    SELECT status, total_minor, currency, paid_by FROM shop.orders WHERE id = %s FOR UPDATE
"""

FIND_PAYMENT = """
    SELECT id, amount_minor, currency FROM shop.payments WHERE id = %s AND order_id = %s
"""

PAY_ORDER = """
    UPDATE shop.orders
       SET status = 'paid', paid_at = %(paid_at)s, paid_by = %(payment_id)s
     WHERE id = %(order_id)s
"""

FIND_OTHERS = """
    SELECT id FROM shop.payments WHERE order_id = %s AND id <> %s ORDER BY received_at, id
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
    """What a report was to us; each is a success."""

    NEW = "new"
    DUPLICATE = "duplicate"

    IGNORED = "ignored"
    """The gateway's word, but of no payment: the shop has no use for it."""


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
    transaction. A report that comes again is a success, and publishes nothing; so is one of
    something else than a payment.

    Raises `SignatureInvalid`, `WebhookExpired`, `WebhookMalformed` and `WebhookReplayed`, all of
    them a `WebhookRefused`, and `UnknownOrder`; each leaves nothing behind. `body` is what came
    over the wire, byte for byte: it is what was signed. A web application calls `read_webhook` and
    `store_report`, with a connection for the second only.
    """
    match read_webhook(headers, body, secret=secret, now=now, window=window):
        case OtherReport():
            return Receipt.IGNORED
        case GatewayReport() as report:
            return store_report(connection, report)
        case report:
            assert_never(report)


def store_report(connection: psycopg.Connection, report: GatewayReport) -> Receipt:
    """The second half of `receive_webhook`, of a report that `read_webhook` has believed. Raises
    `WebhookReplayed` and `UnknownOrder`."""
    with connection.transaction():
        event_id = store_payment(connection, report, report.event_id)
        if event_id is None:
            return Receipt.DUPLICATE
        enqueue(connection, NewJob(PROCESS_PAYMENT, ProcessPayment(event_id=event_id)))
        return Receipt.NEW


def mark_paid(event: Event[PaymentSucceeded], tx: psycopg.Connection) -> None:
    """Turn the order from pending to paid; a payment that it has no use for is to be given back.

    The amount and the currency are those that `receive_webhook` has stored: an event alone is no
    money.
    """
    payment = event.payload
    bill = _lock_bill(tx, payment.order_id)
    match judge(bill, _find_payment(tx, payment)):
        case Pay():
            _pay(tx, payment)
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
            _ask_for_invoice(tx, progress.order_id)
            _thank(tx, progress.order_id, progress.customer_id)
            record_effect(tx, job.id, PROCESS)
        case BillOnly():
            tx.execute(APPLY_PAYMENT, (progress.payment_id,))
            _ask_for_invoice(tx, progress.order_id)
            record_effect(tx, job.id, PROCESS)
        case Settled():
            return
        case Wait(explanation=explanation):
            raise later(explanation, context)
        case step:
            assert_never(step)


def _lock_bill(tx: psycopg.Connection, order_id: UUID) -> Bill:
    """Raises `UnknownOrder`."""
    row = tx.execute(LOCK_BILL, (order_id,)).fetchone()
    if row is None:
        # Not a Reject: the order may be in a database that was just restored, or not replicated.
        raise UnknownOrder(f"there is no order {order_id}")
    return Bill(*row)


def _find_payment(tx: psycopg.Connection, told: PaymentSucceeded) -> Payment:
    """Raises `UnknownPayment`, which is tried again for the same reason."""
    row = tx.execute(FIND_PAYMENT, (told.payment_id, told.order_id)).fetchone()
    if row is None:
        raise UnknownPayment(f"order {told.order_id} has no payment {told.payment_id}")
    return Payment(*row)


def _pay(tx: psycopg.Connection, payment: PaymentSucceeded) -> None:
    """The order is paid by this one, so all others go back: those that did not fit as well."""
    parameters = {
        "paid_at": payment.paid_at,
        "payment_id": payment.payment_id,
        "order_id": payment.order_id,
    }
    tx.execute(PAY_ORDER, parameters)
    others = tx.execute(FIND_OTHERS, (payment.order_id, payment.payment_id)).fetchall()
    for (other_id,) in others:
        owe_refund(tx, other_id, PAID_BY_ANOTHER)


def _lock_progress(tx: psycopg.Connection, event_id: UUID) -> Progress | None:
    with tx.cursor(row_factory=class_row(Progress)) as cursor:
        return cursor.execute(LOCK_PROGRESS, (event_id,)).fetchone()


def _ask_for_invoice(tx: psycopg.Connection, order_id: UUID) -> None:
    enqueue(tx, NewJob(GENERATE_INVOICE_PDF, GenerateInvoicePdf(order_id=order_id)))


def _thank(tx: psycopg.Connection, order_id: UUID, customer_id: UUID) -> None:
    enqueue(tx, NewJob(SEND_CONFIRMATION_EMAIL, SendConfirmationEmail(order_id=order_id)))
    told = NotificationRequested(
        channel="whatsapp", template="payment_success", customer_id=customer_id, order_id=order_id
    )
    publish(tx, order_event(told))
