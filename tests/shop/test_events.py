"""What the shop's events accept, and how they may change."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from handlers.catalogue import schema_of
from handlers.compatibility import broken_promises
from handlers.events import (
    EVENTS,
    JOBS,
    NotificationRequested,
    OrderCancelled,
    OrderCreated,
    OrderEvent,
    PaymentSucceeded,
    order_event,
)

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
EXAMPLES: dict[str, Any] = {
    **{name: str(uuid4()) for name in ("reservation_id", "shipment_id", "event_id")},
    **dict.fromkeys(("quantity", "wanted", "available", "amount"), 1),
    **{"sku": "lip-balm", "reason": "why", "channel": "email", "template": "shipped"},
    "tracking_number": "SG-1",
    **ORDER,
    **PAYMENT,
}
"""A value for every field of every type, by its name."""

TYPES = {**EVENTS, **JOBS}


@pytest.mark.parametrize("name", TYPES)
def test_fields_that_a_newer_producer_adds_are_ignored(name: str) -> None:
    kind: type[msgspec.Struct] = TYPES[name]
    due = {field.name: EXAMPLES[field.name] for field in msgspec.structs.fields(kind)}

    newer = msgspec.json.encode({**due, "added_later": {"by": "a newer producer"}})

    assert msgspec.to_builtins(msgspec.json.decode(newer, type=kind)) == due


class OrderCreatedNext(OrderCreated, frozen=True, kw_only=True):
    """`order.created` with a field that was added by the rule."""

    coupon: str | None = None


def test_a_reader_with_a_new_field_understands_an_event_of_before() -> None:
    assert msgspec.convert(ORDER, OrderCreatedNext).coupon is None


def test_an_event_with_a_new_field_is_understood_by_a_reader_of_before() -> None:
    newer = msgspec.json.encode(msgspec.convert({**ORDER, "coupon": "X"}, OrderCreatedNext))

    assert msgspec.json.decode(newer, type=OrderCreated) == msgspec.convert(ORDER, OrderCreated)


def test_a_new_field_with_a_default_keeps_the_promise() -> None:
    before = schema_of("order.created", OrderCreated)

    assert broken_promises(before, schema_of("order.created", OrderCreatedNext)) == []


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
    "wrong",
    [
        {"paid_amount": 0},
        {"transaction_id": ""},
        {"transaction_id": "tx 1"},
        {"transaction_id": "tx-1\n"},
        {"transaction_id": "tx\0"},
        {"paid_at": "2026-01-02T03:04:05"},
    ],
)
def test_a_payment_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**PAYMENT, **wrong}, PaymentSucceeded)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("missing", [True, False])
def test_every_field_is_due_and_none_may_be_null(name: str, missing: bool) -> None:
    kind: type[msgspec.Struct] = TYPES[name]
    due = {field.name: EXAMPLES[field.name] for field in msgspec.structs.fields(kind)}
    for field in due:
        wrong = {**due, field: None}
        if missing:
            del wrong[field]
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, kind)


@pytest.mark.parametrize(
    "payload",
    [
        OrderCancelled(order_id=uuid4(), reason=""),
        OrderCreated(order_id=uuid4(), customer_id=uuid4(), total=-1, currency="SGD"),
        OrderCreated(order_id=uuid4(), customer_id=uuid4(), total=1, currency="sgd"),
        PaymentSucceeded(
            order_id=uuid4(),
            payment_id=uuid4(),
            transaction_id="tx-1",
            paid_amount=1,
            paid_at=datetime(2026, 1, 2),
        ),
        NotificationRequested(
            channel="x" * 65, template="shipped", customer_id=uuid4(), order_id=uuid4()
        ),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_what_no_reader_could_decode_is_not_published(payload: OrderEvent) -> None:
    with pytest.raises(msgspec.ValidationError):
        order_event(payload)


def test_an_event_is_about_the_order_that_it_names() -> None:
    payload = OrderCancelled(order_id=uuid4(), reason="changed my mind")

    event = order_event(payload)

    assert (event.type, event.aggregate_type, event.aggregate_id, event.payload) == (
        "order.cancelled",
        "order",
        str(payload.order_id),
        payload,
    )
