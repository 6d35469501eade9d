"""What becomes of a payment, decided from what is known; `handlers.payments` carries it out."""

from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from msgspec import Struct

from handlers.refunds import ORDER_CANCELLED, PAID_BY_ANOTHER


class Pay(Struct, frozen=True):
    """The order was waiting for this payment."""


class AlreadyPaid(Struct, frozen=True):
    """This very payment has paid the order: there is nothing to do."""


class GiveBack(Struct, frozen=True):
    """The shop has no claim to this money."""

    reason: str


class Mismatch(Struct, frozen=True):
    """Not what the order costs: somebody has to look."""

    explanation: str


Verdict: TypeAlias = Pay | AlreadyPaid | GiveBack | Mismatch


class Bill(Struct, frozen=True):
    """An order as a payment finds it."""

    status: str
    total: int
    currency: str
    paid_by: UUID | None


class Payment(Struct, frozen=True):
    """A payment as an order finds it: what was stored of it, not what an event says."""

    id: UUID
    amount: int
    currency: str


def judge(bill: Bill, payment: Payment) -> Verdict:
    """Whether the payment pays the bill.

    Who has paid comes first: an order that was cancelled after this payment has settled with it
    when it was cancelled.
    """
    if bill.paid_by == payment.id:
        return AlreadyPaid()
    if bill.status == "cancelled":
        return GiveBack(ORDER_CANCELLED)
    if bill.status == "paid" and bill.paid_by is None:
        # Of before it was noted: to give this one back may be to give the order away.
        return Mismatch("it is paid, and not known by which payment: note that in paid_by")
    if bill.status == "paid":
        return GiveBack(PAID_BY_ANOTHER)
    if (payment.amount, payment.currency) != (bill.total, bill.currency):
        return Mismatch(
            f"it costs {bill.total} {bill.currency}, "
            f"and {payment.amount} {payment.currency} was paid"
        )
    return Pay()


class Proceed(Struct, frozen=True):
    """The order is paid by it, and nothing has followed yet."""


class BillOnly(Struct, frozen=True):
    """The order was paid by it and is cancelled: the money was taken, so there is an invoice, but
    there is nothing to thank for."""


class Settled(Struct, frozen=True):
    """Nothing follows (any more): it was applied before, or never paid its order and goes back."""


class Wait(Struct, frozen=True):
    """Something that comes before has not happened yet."""

    explanation: str


NextStep: TypeAlias = Proceed | BillOnly | Settled | Wait


class Progress(Struct, frozen=True, kw_only=True):
    """How far a payment has come, and what its order has to do with it."""

    payment_id: UUID
    amount: int
    applied_at: datetime | None
    refunded: bool
    order_id: UUID
    customer_id: UUID
    total: int
    status: str
    paid_by: UUID | None


def next_step(progress: Progress) -> NextStep:
    """Whether what follows from a payment may be started."""
    if progress.applied_at is not None:
        return Settled()
    if progress.paid_by == progress.payment_id:
        return BillOnly() if progress.status == "cancelled" else Proceed()
    if progress.refunded:
        return Settled()
    return Wait(
        f"order {progress.order_id} is {progress.status} and not paid by payment "
        f"{progress.payment_id}: it costs {progress.total}, and {progress.amount} was paid"
    )
