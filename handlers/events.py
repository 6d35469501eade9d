"""What the shop's events and jobs carry: identities and minimal facts, never whole rows.

Money is an integer of the currency's minor unit. A reader ignores fields that it does not know, and
a field that is added later is optional: docs/events.md, written from here, has the whole rule.
"""

from datetime import datetime
from typing import Annotated, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from outboxd import NewEvent

VISIBLE = r"^[!-~]+(?!\n)$"
"""Visible ASCII. Not `\\Z` for the end, which JSON Schema does not know, and not `$` alone, which
lets a line feed pass in Python."""

Minor = Annotated[int, Meta(ge=0, le=10**12, description="In the minor unit of its currency.")]
"""An amount in the minor unit of its currency (cents); the bound keeps sums within a bigint."""

Paid = Annotated[int, Meta(gt=0, le=10**12, description="In the minor unit of its currency.")]

Currency = Annotated[
    str, Meta(pattern=r"^[A-Z]{3}(?!\n)$", max_length=3, description="A code of ISO 4217.")
]

TransactionId = Annotated[
    str,
    Meta(pattern=VISIBLE, max_length=255, description="The payment gateway's number of a payment."),
]

Sku = Annotated[str, Meta(pattern=VISIBLE, max_length=64, description="The article.")]
Quantity = Annotated[int, Meta(gt=0, le=10**6, description="How many of it.")]
Reason = Annotated[str, Meta(min_length=1, max_length=255, description="Why.")]
Name = Annotated[str, Meta(min_length=1, max_length=64)]

OrderId = Annotated[UUID, Meta(description="The order.")]
CustomerId = Annotated[UUID, Meta(description="Who ordered.")]
PaymentId = Annotated[UUID, Meta(description="The payment, as the shop numbers it.")]

ORDER_CREATED = "order.created"
ORDER_CANCELLED = "order.cancelled"
PAYMENT_SUCCEEDED = "payment.succeeded"
PAYMENT_REFUND_DUE = "payment.refund_due"
STOCK_RESERVED = "stock.reserved"
STOCK_REJECTED = "stock.rejected"
NOTIFICATION_REQUESTED = "notification.requested"
SHIPMENT_REQUESTED = "shipment.requested"

PROCESS_PAYMENT = "process_payment"
GENERATE_INVOICE_PDF = "generate_invoice_pdf"
SEND_CONFIRMATION_EMAIL = "send_confirmation_email"

ORDER = "order"
"""The aggregate of all events: what happens to one order is published in order."""


class OrderCreated(Struct, frozen=True, kw_only=True):
    """A customer ordered; `total` is the sum of the lines at the prices of that moment."""

    order_id: OrderId
    customer_id: CustomerId
    total: Minor
    currency: Currency


class OrderCancelled(Struct, frozen=True, kw_only=True):
    """The order is off, paid or not; what it had reserved is free again."""

    order_id: OrderId
    reason: Reason


class PaymentSucceeded(Struct, frozen=True, kw_only=True):
    """The gateway says that it holds the money; `paid_at` is its time, with a time zone."""

    order_id: OrderId
    payment_id: PaymentId
    transaction_id: TransactionId
    paid_amount: Paid
    paid_at: Annotated[datetime, Meta(tz=True, description="By the gateway's clock.")]


class PaymentRefundDue(Struct, frozen=True, kw_only=True):
    """The shop holds money that it has to give back."""

    order_id: OrderId
    payment_id: PaymentId
    amount: Paid
    reason: Reason


class StockReserved(Struct, frozen=True, kw_only=True):
    """So many of one article are set aside for an order; one event for each of its lines."""

    order_id: OrderId
    reservation_id: Annotated[UUID, Meta(description="The reservation.")]
    sku: Sku
    quantity: Quantity


class StockRejected(Struct, frozen=True, kw_only=True):
    """Nothing is set aside for an order, because there was too little of this article."""

    order_id: OrderId
    sku: Sku
    wanted: Annotated[int, Meta(gt=0, description="How many the order has of it.")]
    available: Annotated[int, Meta(ge=0, description="How many there were.")]


class NotificationRequested(Struct, frozen=True, kw_only=True):
    """A customer is to be told of an order.

    Channel and template are open sets: a name that the reader does not know is a dead letter.
    """

    channel: Annotated[Name, Meta(description="email, whatsapp or push.")]
    template: Annotated[Name, Meta(description="order_confirmation, payment_success or shipped.")]
    customer_id: CustomerId
    order_id: OrderId


class ShipmentRequested(Struct, frozen=True, kw_only=True):
    """The courier has agreed to pick up an order."""

    order_id: OrderId
    shipment_id: Annotated[UUID, Meta(description="The shipment, as the shop numbers it.")]
    tracking_number: Annotated[
        str, Meta(min_length=1, max_length=255, description="The courier's number of it.")
    ]


class ProcessPayment(Struct, frozen=True, kw_only=True):
    """Start what follows from a payment, once its order is marked as paid."""

    event_id: Annotated[UUID, Meta(description="The `payment.succeeded` that told of the payment.")]


class GenerateInvoicePdf(Struct, frozen=True, kw_only=True):
    """Write the invoice of a paid order."""

    order_id: OrderId


class SendConfirmationEmail(Struct, frozen=True, kw_only=True):
    """Tell the customer what was ordered."""

    order_id: OrderId


OrderEvent: TypeAlias = (
    OrderCreated
    | OrderCancelled
    | PaymentSucceeded
    | PaymentRefundDue
    | StockReserved
    | StockRejected
    | NotificationRequested
    | ShipmentRequested
)

Job: TypeAlias = ProcessPayment | GenerateInvoicePdf | SendConfirmationEmail

EVENTS: dict[str, type[OrderEvent]] = {
    ORDER_CREATED: OrderCreated,
    ORDER_CANCELLED: OrderCancelled,
    PAYMENT_SUCCEEDED: PaymentSucceeded,
    PAYMENT_REFUND_DUE: PaymentRefundDue,
    STOCK_RESERVED: StockReserved,
    STOCK_REJECTED: StockRejected,
    NOTIFICATION_REQUESTED: NotificationRequested,
    SHIPMENT_REQUESTED: ShipmentRequested,
}

JOBS: dict[str, type[Job]] = {
    PROCESS_PAYMENT: ProcessPayment,
    GENERATE_INVOICE_PDF: GenerateInvoicePdf,
    SEND_CONFIRMATION_EMAIL: SendConfirmationEmail,
}

_TYPES = {kind: name for name, kind in EVENTS.items()}


def order_event(payload: OrderEvent) -> NewEvent:
    """The event that carries this payload: its type by the class, its aggregate the order.

    Raises msgspec.ValidationError for a payload that no reader could decode: a Struct that is
    constructed, and not decoded, has not been held against its type.
    """
    msgspec.convert(msgspec.to_builtins(payload), type(payload))
    return NewEvent(
        type=_TYPES[type(payload)],
        aggregate_type=ORDER,
        aggregate_id=str(payload.order_id),
        payload=payload,
    )
