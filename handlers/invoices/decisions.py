"""Whether an order is to have an invoice, decided from what is known of it."""

from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from msgspec import Struct

from handlers.invoices.invoice import Invoice, Item


class Order(Struct, frozen=True, kw_only=True):
    """An order as it is found, paid or not; `transaction_id` is that of the payment `paid_by`."""

    order_id: UUID
    customer_id: UUID
    status: str
    currency: str
    total: int
    ordered_at: datetime
    paid_at: datetime | None
    paid_by: UUID | None
    transaction_id: str | None
    items: tuple[Item, ...]


class Write(Struct, frozen=True):
    """The order is paid."""

    invoice: Invoice


class NotYet(Struct, frozen=True):
    """The payment may still come."""

    reason: str


class Never(Struct, frozen=True):
    """Somebody has to look."""

    reason: str


Decision: TypeAlias = Write | NotYet | Never


def decide(order_id: UUID, order: Order | None) -> Decision:
    """What to do about the invoice of `order_id`.

    Who has paid counts, not the status: an order that was paid and is cancelled by now has its
    invoice, as the shop took the money; what it gives back is in shop.refunds.
    """
    if order is None:
        return Never(f"there is no order {order_id}: no invoice can be written")
    if order.status == "pending":
        return NotYet(f"order {order_id} is pending: its payment has not been applied yet")
    if order.status == "cancelled" and order.paid_by is None:
        return Never(f"order {order_id} was cancelled before it was paid: it has no invoice")
    if order.paid_at is None or order.transaction_id is None:
        return Never(
            f"order {order_id} is paid by {order.paid_by or 'an unknown payment'}, "
            "which is not in shop.payments: an invoice has to name its transaction"
        )
    invoice = Invoice(
        order_id=order.order_id,
        customer_id=order.customer_id,
        currency=order.currency,
        ordered_at=order.ordered_at,
        paid_at=order.paid_at,
        transaction_id=order.transaction_id,
        items=order.items,
    )
    if invoice.total != order.total:
        return Never(
            f"the lines of order {order_id} cost {invoice.total} {order.currency} together, and "
            f"its total is {order.total}: an invoice has to add up"
        )
    return Write(invoice)
