"""Shipping: one pickup for a paid order, whatever the courier and the network do."""

import re
import threading
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from handlers import stock
from handlers.connections import STORE_SECONDS
from handlers.events import NotificationRequested, OrderCreated, ShipmentRequested
from handlers.payments import mark_paid
from handlers.shipping import REQUEST_PICKUP, RequestPickup
from outboxd import DeadLetter, Done, Retry
from outboxd.demo.partners import Partners
from outboxd.demo.partners.faults import Fault
from outboxd.testing import run
from tests.shop.customers import (
    a_paid_order,
    an_event,
    number_of,
    outbox,
    payload_of,
    types_told,
)
from tests.shop.parties import CUSTOMER, a_payment_of, an_order, failing_inserts, together
from tests.shop.pickups import asked, calls, parcels_of, pick_up, shipments


def test_a_paid_order_is_picked_up_and_told_of(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)

    assert pick_up(request_pickup, event) == Done()

    assert asked(partners, order_id) == [201]
    assert outbox(shop) == [
        ("shipment.requested", str(order_id)),
        ("notification.requested", str(order_id)),
    ]
    told = payload_of(shop, "shipment.requested", ShipmentRequested)
    assert shop.execute("SELECT id, order_id, tracking_number FROM shop.shipments").fetchall() == [
        (told.shipment_id, order_id, told.tracking_number)
    ]
    assert payload_of(shop, "notification.requested", NotificationRequested) == (
        NotificationRequested(
            channel="push", template="shipped", customer_id=CUSTOMER, order_id=order_id
        )
    )
    assert shop.execute("SELECT event_id, handler FROM shop.effects").fetchall() == [
        (event.id, "shipping.request_pickup")
    ]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500),
        Fault(status=503),
        Fault(status=429),
        Fault(drop=True),
        Fault(drop=True, when="after"),
        Fault(status=502, when="after"),
    ],
    ids=["500", "503", "429", "cut before", "cut after", "502 after"],
)
def test_a_courier_in_trouble_is_asked_again_with_the_same_key(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, fault: Fault
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)
    with partners.fault(fault):
        assert isinstance(pick_up(request_pickup, event), Retry)
    assert shipments(shop) == [(False, 1)]
    assert outbox(shop) == []

    assert pick_up(request_pickup, event) == Done()

    assert len(asked(partners, order_id)) == 2
    assert parcels_of(partners, order_id) == 1
    assert shipments(shop) == [(True, 2)]


def test_a_courier_that_is_too_slow_is_asked_again(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    """And leaves the time that it takes to store what came of the call."""
    event = a_payment_of(an_order(shop))

    with partners.fault(Fault(delay_seconds=3000)):
        outcome = pick_up(request_pickup, event, timeout_seconds=STORE_SECONDS + 0.5)

    assert isinstance(outcome, Retry)
    assert re.search(r"the courier .* had not answered after 0\.[0-5] s", outcome.error)


def test_a_courier_says_how_long_to_wait(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    with partners.fault(Fault(status=429, retry_after="17")):
        outcome = pick_up(request_pickup, a_payment_of(an_order(shop)))

    assert isinstance(outcome, Retry)
    assert outcome.after_seconds == 17


def test_what_the_courier_refuses_needs_a_person(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    with partners.fault(Fault(status=422, words="we do not deliver to the moon")):
        outcome = pick_up(request_pickup, a_payment_of(an_order(shop)))

    assert outcome == DeadLetter(
        error="Reject: the courier refused this (422: we do not deliver to the moon)"
    )
    assert shipments(shop) == []


def test_an_answer_that_is_no_pickup_is_asked_for_again(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    event = a_payment_of(an_order(shop))
    with partners.fault(Fault(status=200, words="welcome to our new site", when="after")):
        outcome = pick_up(request_pickup, event)
    assert isinstance(outcome, Retry)
    assert "the courier's answer cannot be understood" in outcome.error

    assert pick_up(request_pickup, event) == Done()


def test_a_crash_between_the_call_and_the_commit_repeats_the_call_and_nothing_else(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)
    with failing_inserts(shop, "effects"):
        assert isinstance(pick_up(request_pickup, event), Retry)
    assert (shipments(shop), outbox(shop)) == ([(False, 1)], [])

    assert pick_up(request_pickup, event) == Done()

    assert asked(partners, order_id) == [201, 200]
    assert parcels_of(partners, order_id) == 1
    assert (number_of(shop, "shipments"), number_of(shop, "effects")) == (1, 1)
    assert len(outbox(shop)) == 2


def test_after_the_commit_the_courier_is_not_asked_again(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)
    pick_up(request_pickup, event)

    assert pick_up(request_pickup, event) == Done(duplicate=True)

    assert asked(partners, order_id) == [201]
    assert len(outbox(shop)) == 2


def test_two_deliveries_at_once_make_one_shipment(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)

    with partners.fault(Fault(delay_seconds=0.2)):
        outcomes = together(lambda: pick_up(request_pickup, event), 2)

    assert {Done(), Done(duplicate=True)}.issuperset(outcomes)
    assert parcels_of(partners, order_id) == 1
    assert (number_of(shop, "shipments"), number_of(shop, "effects")) == (1, 1)
    assert len(outbox(shop)) == 2


def test_a_second_payment_of_an_order_ships_nothing(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    second = a_payment_of(order_id)
    shop.execute("UPDATE shop.orders SET paid_by = %s", (uuid4(),))

    assert pick_up(request_pickup, second) == Done()

    assert asked(partners, order_id) == []
    assert shipments(shop) == []


def test_two_payments_of_an_order_that_names_neither_are_one_parcel(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    """As of orders from before it was noted which payment paid them."""
    order_id = an_order(shop)
    payments = [a_payment_of(order_id), a_payment_of(order_id)]

    with partners.fault(Fault(delay_seconds=0.2)):
        outcomes = together(lambda: pick_up(request_pickup, payments.pop()), 2)

    assert outcomes == [Done(), Done()]
    assert parcels_of(partners, order_id) == 1
    assert (len(shipments(shop)), number_of(shop, "effects")) == (1, 1)
    assert types_told(shop) == ["shipment.requested", "notification.requested"]


@pytest.mark.parametrize("state", [None, "new", "reserved"])
def test_an_order_whose_goods_are_still_on_the_shelf_waits(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, state: str | None
) -> None:
    order_id = an_order(shop, stock=state)
    event = a_payment_of(order_id)

    outcome = pick_up(request_pickup, event)

    assert isinstance(outcome, Retry)
    assert f"the goods of order {order_id} are not taken off the shelf yet" in outcome.error
    assert (asked(partners, order_id), shipments(shop)) == ([], [])

    shop.execute("DELETE FROM shop.order_stock")
    shop.execute("INSERT INTO shop.order_stock VALUES (%s, 'sold')", (order_id,))
    assert pick_up(request_pickup, event) == Done()


def test_a_paid_order_whose_stock_was_rejected_is_not_shipped_until_it_has_its_goods(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id, succeeded, _ = a_paid_order(shop)
    created = an_event(payload_of(shop, "order.created", OrderCreated))
    assert run(stock.reserve, created, tx=shop) == Done()
    for handler in (mark_paid, stock.commit):
        assert run(handler, succeeded, tx=shop) == Done()

    outcome = pick_up(request_pickup, succeeded)

    assert outcome == DeadLetter(
        error=f"Reject: there was too little stock for order {order_id}, which is paid: cancel it, "
        "or bring in goods, call handlers.stock.reconsider and redrive this"
    )
    assert (asked(partners, order_id), shipments(shop)) == ([], [])

    for sku, quantity in (("serum-30", 2), ("lip-balm", 1)):
        stock.restock(shop, sku, quantity)
    assert stock.reconsider(shop, order_id)
    assert pick_up(request_pickup, succeeded) == Done()
    assert parcels_of(partners, order_id) == 1


def test_an_order_from_before_the_shop_counted_its_stock_is_shipped(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop, stock="released")

    assert pick_up(request_pickup, a_payment_of(order_id)) == Done()

    assert parcels_of(partners, order_id) == 1


def test_an_order_that_is_not_paid_yet_waits(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop, status="pending")
    event = a_payment_of(order_id)

    assert isinstance(pick_up(request_pickup, event), Retry)

    last = run(request_pickup, event, inbox="own", name=REQUEST_PICKUP, attempt=5)
    assert isinstance(last, DeadLetter)
    assert "its payment has not been applied yet, or was refused" in last.error
    assert asked(partners, order_id) == []


def test_a_cancelled_order_stays(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop, status="cancelled", stock="released")

    assert pick_up(request_pickup, a_payment_of(order_id)) == Done()

    assert asked(partners, order_id) == []


def test_an_order_that_does_not_exist_needs_a_person(request_pickup: RequestPickup) -> None:
    event = a_payment_of(uuid4())

    assert pick_up(request_pickup, event) == DeadLetter(
        error=f"Reject: there is no order {event.payload.order_id}: nothing can be shipped"
    )


def test_no_transaction_is_open_while_the_courier_thinks(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    event = a_payment_of(an_order(shop))
    before = calls(partners)
    call = threading.Thread(target=pick_up, args=(request_pickup, event))

    with partners.fault(Fault(delay_seconds=1)):
        call.start()
        while calls(partners) == before:
            pass
        states = shop.execute(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        ).fetchall()
    call.join()

    assert {state for (state,) in states} == {"idle"}


def test_the_handler_is_constructed_while_the_database_is_away(tmp_path: Path) -> None:
    handler = RequestPickup(
        base_url="http://127.0.0.1:9", database_url=f"host={tmp_path} dbname=shop"
    )

    handler.close()
