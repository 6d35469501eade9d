"""Shipping: one pickup for a paid order, whatever the courier and the network do."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from handlers.events import NotificationRequested, PaymentSucceeded, ShipmentRequested
from handlers.shipping import REQUEST_PICKUP, RequestPickup
from outboxd import DeadLetter, Done, Event, Retry
from outboxd.core.outcomes import Outcome
from outboxd.demo.partners import Partners, running_partners
from outboxd.demo.partners.book import Service
from outboxd.demo.partners.faults import Fault
from outboxd.testing import run
from tests.shop.customers import number_of, outbox, payload_of
from tests.shop.parties import (
    CUSTOMER,
    a_payment_of,
    an_order,
    failing_inserts,
    statuses,
    together,
)


@pytest.fixture(scope="module")
def partners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Partners]:
    with running_partners(tmp_path_factory.mktemp("partners") / "log") as running:
        yield running


@pytest.fixture
def request_pickup(partners: Partners, shop_database: str) -> Iterator[RequestPickup]:
    base_url = partners.base_url(Service.COURIER)
    # As texts, which is what a configuration takes from the environment.
    handler = RequestPickup(base_url=base_url, database_url=shop_database, timeout_seconds="5")
    with closing(handler):
        yield handler


def handle(
    handler: RequestPickup, event: Event[PaymentSucceeded], timeout_seconds: float = 30.0
) -> Outcome:
    return run(handler, event, inbox="own", name=REQUEST_PICKUP, timeout_seconds=timeout_seconds)


def asked(partners: Partners, event: Event[PaymentSucceeded]) -> list[int]:
    """How each request for this event ended; all of them had its idempotency key."""
    return statuses(partners, Service.COURIER, f"{event.id}:{REQUEST_PICKUP}")


def pickups_of(partners: Partners, order_id: UUID) -> int:
    content = {"order_id": str(order_id)}
    return sum(each.content == content for each in partners.accepted(Service.COURIER))


def test_a_paid_order_is_picked_up_and_told_of(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)

    assert handle(request_pickup, event) == Done()

    assert asked(partners, event) == [201]
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
        assert isinstance(handle(request_pickup, event), Retry)
    assert number_of(shop, "shipments") == 0

    assert handle(request_pickup, event) == Done()

    assert len(asked(partners, event)) == 2
    assert pickups_of(partners, order_id) == 1
    assert number_of(shop, "shipments") == 1


def test_a_courier_that_is_too_slow_is_asked_again(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    event = a_payment_of(an_order(shop))

    with partners.fault(Fault(delay_seconds=3000)):
        assert isinstance(handle(request_pickup, event, timeout_seconds=0.3), Retry)


def test_a_courier_says_how_long_to_wait(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    with partners.fault(Fault(status=429, retry_after="17")):
        outcome = handle(request_pickup, a_payment_of(an_order(shop)))

    assert isinstance(outcome, Retry)
    assert outcome.after_seconds == 17


def test_what_the_courier_refuses_needs_a_person(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    with partners.fault(Fault(status=422, words="we do not deliver to the moon")):
        outcome = handle(request_pickup, a_payment_of(an_order(shop)))

    assert outcome == DeadLetter(
        error="Reject: the courier refused this (422: we do not deliver to the moon)"
    )
    assert number_of(shop, "shipments") == 0


def test_an_answer_that_is_no_pickup_is_asked_for_again(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    event = a_payment_of(an_order(shop))
    with partners.fault(Fault(status=200, words="welcome to our new site", when="after")):
        outcome = handle(request_pickup, event)
    assert isinstance(outcome, Retry)
    assert "the courier's answer cannot be understood" in outcome.error

    assert handle(request_pickup, event) == Done()


def test_a_crash_between_the_call_and_the_commit_repeats_the_call_and_nothing_else(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)
    with failing_inserts(shop, "shipments"):
        assert isinstance(handle(request_pickup, event), Retry)
    assert (number_of(shop, "effects"), outbox(shop)) == (0, [])

    assert handle(request_pickup, event) == Done()

    assert asked(partners, event) == [201, 200]
    assert pickups_of(partners, order_id) == 1
    assert (number_of(shop, "shipments"), number_of(shop, "effects")) == (1, 1)
    assert len(outbox(shop)) == 2


def test_after_the_commit_the_courier_is_not_asked_again(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    event = a_payment_of(an_order(shop))
    handle(request_pickup, event)

    assert handle(request_pickup, event) == Done(duplicate=True)

    assert asked(partners, event) == [201]
    assert len(outbox(shop)) == 2


def test_two_deliveries_at_once_make_one_shipment(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    event = a_payment_of(order_id)

    with partners.fault(Fault(delay_seconds=0.2)):
        outcomes = together(lambda: handle(request_pickup, event), 2)

    assert {Done(), Done(duplicate=True)}.issuperset(outcomes)
    assert pickups_of(partners, order_id) == 1
    assert (number_of(shop, "shipments"), number_of(shop, "effects")) == (1, 1)
    assert len(outbox(shop)) == 2


def test_a_second_payment_of_an_order_ships_nothing(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    order_id = an_order(shop)
    second = a_payment_of(order_id)
    shop.execute("UPDATE shop.orders SET paid_by = %s", (uuid4(),))

    assert handle(request_pickup, second) == Done()

    assert asked(partners, second) == []
    assert number_of(shop, "shipments") == 0


def test_an_order_that_is_not_paid_yet_waits(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    event = a_payment_of(an_order(shop, status="pending"))

    assert isinstance(handle(request_pickup, event), Retry)

    last = run(request_pickup, event, inbox="own", name=REQUEST_PICKUP, attempt=5)
    assert isinstance(last, DeadLetter)
    assert "its payment has not been applied yet, or was refused" in last.error
    assert asked(partners, event) == []


def test_a_cancelled_order_stays(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    event = a_payment_of(an_order(shop, status="cancelled"))

    assert handle(request_pickup, event) == Done()

    assert asked(partners, event) == []


def test_an_order_that_does_not_exist_needs_a_person(request_pickup: RequestPickup) -> None:
    event = a_payment_of(uuid4())

    assert handle(request_pickup, event) == DeadLetter(
        error=f"Reject: there is no order {event.payload.order_id}: nothing can be shipped"
    )


def test_no_transaction_is_open_while_the_courier_thinks(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners
) -> None:
    event = a_payment_of(an_order(shop))
    before = partners.counts()[Service.COURIER].requests
    call = threading.Thread(target=handle, args=(request_pickup, event))

    with partners.fault(Fault(delay_seconds=1)):
        call.start()
        while partners.counts()[Service.COURIER].requests == before:
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
