"""Payments: told as often as the gateway likes, applied once, and only where they fit."""

from uuid import uuid4

import psycopg
import pytest

from handlers.events import PaymentSucceeded
from handlers.orders import create_order
from handlers.payments import UnknownOrder, mark_paid, record_payment
from outboxd import Reject
from tests.shop.customers import (
    COSTS,
    a_checkout,
    a_payment,
    a_success,
    an_event,
    number_of,
    outbox,
    payload_of,
)


def status_of_orders(shop: psycopg.Connection) -> list[str]:
    return [status for (status,) in shop.execute("SELECT status FROM shop.orders")]


def test_a_payment_is_stored_and_told_in_one_event(shop: psycopg.Connection) -> None:
    order_id = create_order(shop, a_checkout())

    assert record_payment(shop, a_payment(order_id)) is True

    assert outbox(shop)[1:] == [("payment.succeeded", str(order_id))]
    told = payload_of(shop, "payment.succeeded", PaymentSucceeded)
    assert (told.order_id, told.transaction_id, told.paid_amount) == (order_id, "tx-1", COSTS)
    ((payment_id, event_id),) = shop.execute("SELECT id, event_id FROM shop.payments").fetchall()
    assert payment_id == told.payment_id
    assert shop.execute(
        "SELECT event_type FROM outboxd.outbox_events WHERE id = %s", (event_id,)
    ).fetchall() == [("payment.succeeded",)]


def test_a_transaction_that_is_told_again_is_a_success_without_an_event(
    shop: psycopg.Connection,
) -> None:
    order_id = create_order(shop, a_checkout())
    record_payment(shop, a_payment(order_id))

    assert record_payment(shop, a_payment(order_id)) is False

    assert len(outbox(shop)) == 2
    assert number_of(shop, "payments") == 1


def test_a_payment_of_an_order_that_is_not_there_leaves_nothing(shop: psycopg.Connection) -> None:
    with pytest.raises(UnknownOrder):
        record_payment(shop, a_payment(uuid4()))

    assert outbox(shop) == []
    assert number_of(shop, "payments") == 0


def test_a_payment_marks_its_order_as_paid_and_leaves_one_line_in_the_ledger(
    shop: psycopg.Connection,
) -> None:
    event = a_success(create_order(shop, a_checkout()))

    with shop.transaction():
        mark_paid(event, shop)

    assert status_of_orders(shop) == ["paid"]
    assert shop.execute("SELECT event_id, handler FROM shop.effects").fetchall() == [
        (event.id, "payment.mark_paid")
    ]


def test_the_payment_knows_when_it_was_applied(shop: psycopg.Connection) -> None:
    order_id = create_order(shop, a_checkout())
    record_payment(shop, a_payment(order_id))
    event = an_event(payload_of(shop, "payment.succeeded", PaymentSucceeded))

    with shop.transaction():
        mark_paid(event, shop)

    assert shop.execute("SELECT applied_at IS NOT NULL FROM shop.payments").fetchall() == [(True,)]


@pytest.mark.parametrize("status", ["paid", "cancelled"])
def test_only_a_pending_order_can_be_paid(shop: psycopg.Connection, status: str) -> None:
    order_id = create_order(shop, a_checkout())
    shop.execute("UPDATE shop.orders SET status = %s, paid_at = now()", (status,))

    with pytest.raises(Reject, match=f"is {status}"), shop.transaction():
        mark_paid(a_success(order_id), shop)

    assert number_of(shop, "effects") == 0


@pytest.mark.parametrize("amount", [COSTS - 1, COSTS + 1])
def test_an_amount_that_does_not_fit_needs_a_person(shop: psycopg.Connection, amount: int) -> None:
    order_id = create_order(shop, a_checkout())

    with pytest.raises(Reject, match=f"{amount} was paid"), shop.transaction():
        mark_paid(a_success(order_id, amount), shop)

    assert status_of_orders(shop) == ["pending"]


def test_a_payment_whose_order_is_not_there_yet_is_tried_again(shop: psycopg.Connection) -> None:
    with pytest.raises(UnknownOrder), shop.transaction():
        mark_paid(a_success(uuid4()), shop)
