"""The demo's customers: the same seed buys the same things, and repetitions change nothing."""

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from outboxd.demo.errors import DemoError
from outboxd.demo.shopper import REPEATED_EVERY, Purchase
from outboxd.demo.shopping import Shop, shopping
from outboxd.demo.storefront import Storefront, storefront
from tests.demo.shop import SECRET, buy, open_shop

EVENTS = 3
"""Of a purchase, before anybody has handled one: the order, its payment, and the job."""

THROW_EVERYBODY_OUT = """
    SELECT pg_terminate_backend(pid)
      FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def number_of(dsn: str, table: str) -> int:
    with psycopg.connect(dsn) as connection:
        ((number,),) = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()
        return int(number)


def until_closed(shop: Shop) -> None:
    while not shop.closed:
        time.sleep(0.005)


@pytest.mark.parametrize("number", range(20))
def test_the_same_seed_and_number_make_the_same_purchase(number: int) -> None:
    assert Purchase(7, number).checkout == Purchase(7, number).checkout
    assert Purchase(7, number).checkout != Purchase(8, number).checkout


def test_some_purchases_are_sent_again_at_once_and_publish_each_event_once(
    shop_database: str,
) -> None:
    assert Purchase(1, REPEATED_EVERY).repeated

    buy(shop_database, range(REPEATED_EVERY, REPEATED_EVERY + 1))

    assert number_of(shop_database, "shop.payments") == 1
    assert number_of(shop_database, "outboxd.outbox_events") == EVENTS


def test_a_purchase_made_again_after_a_lost_connection_changes_nothing(shop_database: str) -> None:
    purchase = Purchase(1, 3)
    for _ in range(2):
        with open_shop(shop_database) as client:
            purchase.make(client, SECRET)

    assert number_of(shop_database, "outboxd.outbox_events") == EVENTS
    assert number_of(shop_database, "shop.payments") == 1


@pytest.fixture
def opened(shop_database: str, tmp_path: Path) -> Iterator[Storefront]:
    """The shop's web application, in a process of its own as in the demo."""
    with storefront(shop_database, SECRET, tmp_path / "log") as opened:
        yield opened


def test_the_shop_closes_after_the_last_order(opened: Storefront, shop_database: str) -> None:
    with shopping(opened, orders=25, rate=1000, seed=1) as shop:
        until_closed(shop)

    assert number_of(shop_database, "shop.orders") == 25
    assert number_of(shop_database, "outboxd.outbox_events") == 25 * EVENTS


def test_a_shop_without_end_closes_when_it_is_told_to(
    opened: Storefront, shop_database: str
) -> None:
    with shopping(opened, orders=None, rate=1000, seed=1) as shop:
        while number_of(shop_database, "shop.orders") < 10:
            assert shop.closed is False


def test_customers_go_on_after_the_database_threw_the_shop_out(
    opened: Storefront, shop_database: str
) -> None:
    with (
        shopping(opened, orders=60, rate=200, seed=1) as shop,
        psycopg.connect(shop_database, autocommit=True) as operator,
    ):
        for made in range(10, 60, 10):
            while number_of(shop_database, "shop.orders") < made:
                assert shop.closed is False
            operator.execute(THROW_EVERYBODY_OUT)
        until_closed(shop)

    assert number_of(shop_database, "shop.orders") == 60
    assert number_of(shop_database, "outboxd.outbox_events") == 60 * EVENTS


def test_what_the_shop_refuses_ends_it(opened: Storefront) -> None:
    wrong = Storefront(opened.address, "another secret")

    with (
        shopping(wrong, orders=5, rate=1000, seed=1) as shop,
        pytest.raises(DemoError, match="the shop refuses POST /v1/webhooks/payment: 403"),
    ):
        until_closed(shop)
