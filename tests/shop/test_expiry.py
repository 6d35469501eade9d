"""Orders that nobody pays for make room for others, and those that somebody has paid for do not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest

from handlers.events import OrderCancelled, OrderCreated
from handlers.expiry import expire_unpaid
from handlers.orders import create_order
from handlers.payments import mark_paid
from handlers.stock import release, reserve, restock
from outboxd import Done
from outboxd.testing import run
from tests.shop.customers import (
    a_checkout,
    a_report,
    a_reported_payment,
    an_event,
    number_of,
    payloads_of,
    types_told,
    until_somebody_waits_for_a_lock,
    webhook,
)

HOUR = timedelta(hours=1)
AGE = "UPDATE shop.orders SET created_at = created_at - %s WHERE id = %s"


def an_order(shop: psycopg.Connection, age: timedelta) -> UUID:
    order_id = create_order(shop, a_checkout(f"key-{uuid4()}"))
    shop.execute(AGE, (age, order_id))
    return order_id


def statuses(shop: psycopg.Connection) -> dict[UUID, str]:
    return dict(shop.execute("SELECT id, status FROM shop.orders").fetchall())


@pytest.fixture
def other(shop_database: str) -> Iterator[psycopg.Connection]:
    """Somebody else's connection."""
    with psycopg.connect(shop_database) as connection:
        yield connection


def test_what_was_not_paid_in_time_is_cancelled_and_its_goods_are_free(
    shop: psycopg.Connection,
) -> None:
    for sku in ("serum-30", "lip-balm"):
        restock(shop, sku, 2)
    old, young = an_order(shop, 2 * HOUR), an_order(shop, HOUR / 2)
    created = payloads_of(shop, "order.created", OrderCreated)[0]
    assert run(reserve, an_event(created), tx=shop) == Done()

    assert expire_unpaid(shop, HOUR) == [old]
    assert expire_unpaid(shop, HOUR) == []

    assert statuses(shop) == {old: "cancelled", young: "pending"}
    (cancelled,) = payloads_of(shop, "order.cancelled", OrderCancelled)
    assert cancelled == OrderCancelled(order_id=old, reason="it was not paid in time")
    assert run(release, an_event(cancelled), tx=shop) == Done()
    assert shop.execute("SELECT sum(reserved) FROM shop.stock").fetchall() == [(0,)]


def test_the_oldest_come_first_and_no_more_than_asked_for(shop: psycopg.Connection) -> None:
    ages = [3, 5, 2, 4]
    by_age = {age: an_order(shop, age * HOUR) for age in ages}

    assert expire_unpaid(shop, HOUR, limit=3) == [by_age[5], by_age[4], by_age[3]]
    assert expire_unpaid(shop, HOUR, limit=3) == [by_age[2]]


def test_orders_that_are_left_alone_do_not_keep_others_from_their_turn(
    shop: psycopg.Connection,
) -> None:
    a_reported_payment(shop, an_order(shop, 3 * HOUR), amount=1)
    unpaid = an_order(shop, 2 * HOUR)

    assert expire_unpaid(shop, HOUR, limit=1) == [unpaid]


@pytest.mark.parametrize("amount", [5350, 1])
def test_an_order_that_any_payment_has_come_for_is_left_alone(
    shop: psycopg.Connection, amount: int
) -> None:
    """Marked as paid or not yet, or never because it does not fit: then somebody decides."""
    order_id = an_order(shop, 2 * HOUR)
    succeeded, _ = a_reported_payment(shop, order_id, amount=amount)

    assert expire_unpaid(shop, HOUR) == []
    run(mark_paid, succeeded, tx=shop)
    assert expire_unpaid(shop, HOUR) == []

    assert number_of(shop, "refunds") == 0
    assert "order.cancelled" not in types_told(shop)


def test_an_order_whose_payment_is_being_stored_is_left_alone(
    shop: psycopg.Connection, other: psycopg.Connection, shop_database: str
) -> None:
    order_id = an_order(shop, 2 * HOUR)
    with ThreadPoolExecutor(1) as thread:
        with other.transaction():
            webhook(other, a_report(order_id))
            expired = thread.submit(expire_unpaid, shop, HOUR)
            until_somebody_waits_for_a_lock(shop_database)
        assert expired.result() == []

    assert statuses(shop) == {order_id: "pending"}


def test_an_order_that_is_cancelled_at_the_same_time_is_cancelled_once(
    shop: psycopg.Connection, other: psycopg.Connection, shop_database: str
) -> None:
    order_id = an_order(shop, 2 * HOUR)
    assert expire_unpaid(other, HOUR) == [order_id]

    with ThreadPoolExecutor(1) as thread:
        expired = thread.submit(expire_unpaid, shop, HOUR)
        until_somebody_waits_for_a_lock(shop_database)
        other.commit()
        assert expired.result() == []

    assert types_told(shop).count("order.cancelled") == 1


def test_a_payment_that_comes_too_late_goes_back(shop: psycopg.Connection) -> None:
    order_id = an_order(shop, 2 * HOUR)
    expire_unpaid(shop, HOUR)
    succeeded, _ = a_reported_payment(shop, order_id)

    assert run(mark_paid, succeeded, tx=shop) == Done()

    assert types_told(shop)[-1] == "payment.refund_due"
