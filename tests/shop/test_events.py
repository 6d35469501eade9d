"""What the shop's events accept."""

from typing import Any
from uuid import uuid4

import msgspec
import pytest

from handlers.events import OrderCreated, PaymentSucceeded, SendConfirmationEmail

ORDER: dict[str, Any] = {
    "order_id": str(uuid4()),
    "customer_id": str(uuid4()),
    "total": 5350,
    "currency": "SGD",
}
PAYMENT: dict[str, Any] = {
    "order_id": str(uuid4()),
    "payment_id": str(uuid4()),
    "transaction_id": "tx-1",
    "paid_amount": 5350,
    "paid_at": "2026-01-02T03:04:05Z",
}


def test_fields_that_a_newer_producer_adds_are_ignored() -> None:
    assert msgspec.convert({**ORDER, "coupon": "X"}, OrderCreated).total == 5350
    job = {"order_id": ORDER["order_id"], "language": "ja"}
    assert str(msgspec.convert(job, SendConfirmationEmail).order_id) == ORDER["order_id"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"total": -1},
        {"total": 53.5},
        {"total": 10**13},
        {"currency": "sgd"},
        {"currency": "SGD\n"},
        {"order_id": "17"},
    ],
)
def test_an_order_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**ORDER, **wrong}, OrderCreated)


@pytest.mark.parametrize(
    "wrong", [{"paid_amount": 0}, {"transaction_id": ""}, {"paid_at": "2026-01-02T03:04:05"}]
)
def test_a_payment_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**PAYMENT, **wrong}, PaymentSucceeded)
