"""What the shop's events and jobs carry. Money is an integer of the currency's minor unit.

Fields that a producer adds later are ignored, so producers may be deployed first.
"""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

Minor = Annotated[int, Meta(ge=0, le=10**12)]
"""An amount in the minor unit of its currency (cents); the bound keeps sums within a bigint."""

Currency = Annotated[str, Meta(pattern=r"^[A-Z]{3}\Z")]
"""A code of ISO 4217."""

TransactionId = Annotated[str, Meta(min_length=1, max_length=255)]
"""The payment gateway's own number of a payment."""

ORDER_CREATED = "order.created"
PAYMENT_SUCCEEDED = "payment.succeeded"
SEND_CONFIRMATION_EMAIL = "email.order_confirmation"

ORDER = "order"
"""The aggregate of all of them: what happens to one order is published in order."""


class OrderCreated(Struct, frozen=True, kw_only=True):
    """A customer ordered; `total` is the sum of the lines at the prices of that moment."""

    order_id: UUID
    customer_id: UUID
    total: Minor
    currency: Currency


class PaymentSucceeded(Struct, frozen=True, kw_only=True):
    """The gateway says that it holds the money; `paid_at` is its time, with a time zone."""

    order_id: UUID
    payment_id: UUID
    transaction_id: TransactionId
    paid_amount: Annotated[int, Meta(gt=0, le=10**12)]
    paid_at: Annotated[datetime, Meta(tz=True)]


class SendConfirmationEmail(Struct, frozen=True, kw_only=True):
    """A job: tell the customer that the order is paid."""

    order_id: UUID
