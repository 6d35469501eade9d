"""Of an order that is cancelled around its pickup: either the parcel or the money, never both, and
in the end never neither."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psycopg
import pytest

from handlers import stock
from handlers.events import OrderCancelled, OrderCreated, PaymentSucceeded
from handlers.orders import InDelivery, cancel_order
from handlers.payments import mark_paid
from handlers.shipments import Needed, give_up_pickup, intend
from handlers.shipping import RequestPickup
from outboxd import DeadLetter, Done, Event, Retry
from outboxd.demo.partners import Partners
from outboxd.demo.partners.faults import Fault
from outboxd.testing import run
from tests.shop.customers import (
    a_paid_order,
    an_event,
    number_of,
    payload_of,
    types_told,
    until_somebody_waits_for_a_lock,
)
from tests.shop.pickups import asked, calls, parcels_of, pick_up, shipments

PIECES = 10
REFUSED = Fault(status=401, words="token expired")
LOST = Fault(drop=True, when="after", count=1)
AN_HOUR_LATER = "UPDATE shop.shipments SET requested_at = requested_at - interval '1 hour'"


@pytest.fixture
def order(shop: psycopg.Connection) -> tuple[UUID, Event[PaymentSucceeded]]:
    """Paid and sold: the parcel waits to be fetched."""
    for sku in ("serum-30", "lip-balm"):
        stock.restock(shop, sku, PIECES)
    order_id, succeeded, _ = a_paid_order(shop)
    created = an_event(payload_of(shop, "order.created", OrderCreated))
    assert run(stock.reserve, created, tx=shop) == Done()
    for handler in (mark_paid, stock.commit):
        assert run(handler, succeeded, tx=shop) == Done()
    return order_id, succeeded


def pieces(shop: psycopg.Connection) -> int:
    ((on_hand,),) = shop.execute("SELECT on_hand FROM shop.stock WHERE sku = 'serum-30'").fetchall()
    return int(on_hand)


def cancel(shop: psycopg.Connection, order_id: UUID) -> None:
    """Cancel it, and tell the stock."""
    assert cancel_order(shop, order_id, "changed my mind")
    cancelled = an_event(OrderCancelled(order_id=order_id, reason="changed my mind"))
    assert run(stock.release, cancelled, tx=shop) == Done()


def refuses_to_cancel(shop: psycopg.Connection, order_id: UUID, why: str) -> None:
    with pytest.raises(InDelivery, match=why):
        cancel_order(shop, order_id, "changed my mind")
    assert number_of(shop, "refunds") == 0
    assert "order.cancelled" not in types_told(shop)
    assert shop.execute("SELECT status FROM shop.orders").fetchall() == [("paid",)]


def assert_delivered(shop: psycopg.Connection, partners: Partners, order_id: UUID) -> None:
    assert parcels_of(partners, order_id) == 1
    assert [confirmed for confirmed, _ in shipments(shop)] == [True]
    assert number_of(shop, "refunds") == 0
    assert pieces(shop) == PIECES - 2


def assert_given_back(shop: psycopg.Connection, partners: Partners, order_id: UUID) -> None:
    assert parcels_of(partners, order_id) == 0
    assert shipments(shop) == []
    assert number_of(shop, "refunds") == 1
    assert pieces(shop) == PIECES
    assert "shipment.requested" not in types_told(shop)


Order = tuple[UUID, Event[PaymentSucceeded]]


def test_an_order_that_is_cancelled_first_is_given_back_and_not_fetched(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    cancel(shop, order_id)

    assert pick_up(request_pickup, succeeded) == Done()

    assert asked(partners, order_id) == []
    assert_given_back(shop, partners, order_id)


def test_a_shipped_order_cannot_be_cancelled(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    pick_up(request_pickup, succeeded)

    refuses_to_cancel(shop, order_id, f"the courier has order {order_id} as SG.*a return")

    assert_delivered(shop, partners, order_id)


def test_an_order_cannot_be_cancelled_while_the_courier_is_asked(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    before = calls(partners)
    with ThreadPoolExecutor(1) as thread, partners.fault(Fault(delay_seconds=0.5, count=1)):
        outcome = thread.submit(pick_up, request_pickup, succeeded)
        while calls(partners) == before:
            pass
        refuses_to_cancel(shop, order_id, "has not answered yet: try again when it has")
        assert outcome.result() == Done()

    assert_delivered(shop, partners, order_id)


def test_an_order_whose_acceptance_was_lost_cannot_be_cancelled(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    with partners.fault(LOST):
        assert isinstance(pick_up(request_pickup, succeeded), Retry)
    assert parcels_of(partners, order_id) == 1

    refuses_to_cancel(shop, order_id, "has not answered yet")

    assert pick_up(request_pickup, succeeded) == Done()
    assert_delivered(shop, partners, order_id)


def test_an_order_that_the_courier_refuses_can_be_cancelled(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    with partners.fault(Fault(status=422, words="we do not deliver to the moon")):
        assert isinstance(pick_up(request_pickup, succeeded), DeadLetter)

    cancel(shop, order_id)

    assert pick_up(request_pickup, succeeded) == Done()  # redriven
    assert_given_back(shop, partners, order_id)


def test_an_order_that_the_courier_refused_and_that_is_redriven_is_fetched(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    with partners.fault(REFUSED):
        pick_up(request_pickup, succeeded)

    assert pick_up(request_pickup, succeeded) == Done()

    assert_delivered(shop, partners, order_id)


def test_a_refusal_after_an_answer_that_was_lost_proves_nothing(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    """The parcel is booked, and then the token expires."""
    order_id, succeeded = order
    with partners.fault(LOST):
        pick_up(request_pickup, succeeded)
    with partners.fault(REFUSED):
        outcome = pick_up(request_pickup, succeeded)

    assert isinstance(outcome, DeadLetter)
    assert "token expired" in outcome.error
    assert f"ask the courier whether it has order {order_id}" in outcome.error
    refuses_to_cancel(shop, order_id, "has not answered yet")

    assert pick_up(request_pickup, succeeded) == Done()  # with a new token, redriven
    assert_delivered(shop, partners, order_id)


def test_a_refusal_of_one_call_proves_nothing_about_another_that_is_under_way(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    before = calls(partners)
    with ThreadPoolExecutor(1) as thread:
        with partners.fault(Fault(delay_seconds=1, count=1)):
            first = thread.submit(pick_up, request_pickup, succeeded)
            while calls(partners) == before:
                pass
        with partners.fault(REFUSED):
            assert isinstance(pick_up(request_pickup, succeeded), DeadLetter)
        refuses_to_cancel(shop, order_id, "has not answered yet")
        assert first.result() == Done()

    assert_delivered(shop, partners, order_id)


def test_what_the_courier_does_not_have_can_be_given_up_and_given_back(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    with partners.fault(Fault(status=503)):
        pick_up(request_pickup, succeeded)
    with partners.fault(REFUSED):
        pick_up(request_pickup, succeeded)

    assert not give_up_pickup(shop, order_id)  # the call may still be under way
    shop.execute(AN_HOUR_LATER)
    assert give_up_pickup(shop, order_id)
    assert not give_up_pickup(shop, order_id)

    cancel(shop, order_id)
    assert_given_back(shop, partners, order_id)


def test_what_the_courier_has_confirmed_is_not_given_up(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    pick_up(request_pickup, succeeded)
    shop.execute(AN_HOUR_LATER)

    assert not give_up_pickup(shop, order_id)

    assert_delivered(shop, partners, order_id)


def test_a_parcel_whose_intent_somebody_has_deleted_is_known_of_again(
    shop: psycopg.Connection, request_pickup: RequestPickup, partners: Partners, order: Order
) -> None:
    order_id, succeeded = order
    before = calls(partners)
    with ThreadPoolExecutor(1) as thread, partners.fault(Fault(delay_seconds=0.5, count=1)):
        outcome = thread.submit(pick_up, request_pickup, succeeded)
        while calls(partners) == before:
            pass
        shop.execute("DELETE FROM shop.shipments")
        assert outcome.result() == Done()

    assert_delivered(shop, partners, order_id)


def test_a_pickup_waits_for_a_cancellation_that_is_under_way(
    shop: psycopg.Connection,
    shop_database: str,
    request_pickup: RequestPickup,
    partners: Partners,
    order: Order,
) -> None:
    order_id, succeeded = order
    with ThreadPoolExecutor(1) as thread:
        with shop.transaction():
            cancel(shop, order_id)
            outcome = thread.submit(pick_up, request_pickup, succeeded)
            until_somebody_waits_for_a_lock(shop_database)
        assert outcome.result() == Done()

    assert_given_back(shop, partners, order_id)


def test_a_cancellation_waits_for_an_intent_that_is_being_stored(
    shop: psycopg.Connection, shop_database: str, order: Order
) -> None:
    order_id, succeeded = order
    with ThreadPoolExecutor(1) as thread:
        with psycopg.connect(shop_database) as caller:
            assert isinstance(intend(caller, succeeded.payload), Needed)
            refusal = thread.submit(refuses_to_cancel, shop, order_id, "has not answered yet")
            until_somebody_waits_for_a_lock(shop_database)
        refusal.result()


def test_a_cancellation_that_cannot_see_the_intent_fails(
    shop: psycopg.Connection, shop_database: str, order: Order
) -> None:
    """In REPEATABLE READ, which may be the default of a role or an application."""
    order_id, succeeded = order
    shop.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with ThreadPoolExecutor(1) as thread:
        with psycopg.connect(shop_database) as caller:
            intend(caller, succeeded.payload)
            cancelled = thread.submit(cancel_order, shop, order_id, "changed my mind")
            until_somebody_waits_for_a_lock(shop_database)
        with pytest.raises(psycopg.errors.SerializationFailure):
            cancelled.result()

    refuses_to_cancel(shop, order_id, "has not answered yet")


@pytest.mark.parametrize("number", range(6))
def test_both_at_once_end_in_one_or_the_other(
    shop: psycopg.Connection,
    shop_database: str,
    request_pickup: RequestPickup,
    partners: Partners,
    order: Order,
    number: int,
) -> None:
    order_id, succeeded = order
    barrier = threading.Barrier(2)
    cancelled: list[bool] = []

    def fetch() -> None:
        barrier.wait()
        pick_up(request_pickup, succeeded)

    def give_back() -> None:
        with psycopg.connect(shop_database, autocommit=True) as connection:
            barrier.wait()
            try:
                cancelled.append(cancel_order(connection, order_id, "changed my mind"))
            except InDelivery:
                cancelled.append(False)

    fault = LOST if number % 2 else Fault(delay_seconds=0.05, count=1)
    with partners.fault(fault), ThreadPoolExecutor(2) as threads:
        both: list[Callable[[], None]] = [fetch, give_back]
        for done in [threads.submit(each) for each in both[:: (-1) ** number]]:
            done.result()
    assert isinstance(pick_up(request_pickup, succeeded), Done)

    parcels, refunds = parcels_of(partners, order_id), number_of(shop, "refunds")
    assert (parcels, refunds) == ((0, 1) if cancelled == [True] else (1, 0))
