"""The demo's customers: the same seed buys the same things, and repetitions change nothing."""

import time

import psycopg
import pytest

from outboxd.demo.shopper import REPEATED_EVERY, Purchase
from outboxd.demo.shopping import Shop, shopping

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


def test_some_purchases_are_sent_twice_and_publish_each_event_once(shop_database: str) -> None:
    purchase = Purchase(1, REPEATED_EVERY)
    assert purchase.requests == 2

    with psycopg.connect(shop_database, autocommit=True) as connection:
        purchase.make(connection)

    assert number_of(shop_database, "outboxd.outbox_events") == 2


def test_a_purchase_made_again_after_a_lost_connection_changes_nothing(shop_database: str) -> None:
    for _ in range(2):
        with psycopg.connect(shop_database, autocommit=True) as connection:
            Purchase(1, 3).make(connection)

    assert number_of(shop_database, "outboxd.outbox_events") == 2
    assert number_of(shop_database, "shop.payments") == 1


def test_the_shop_closes_after_the_last_order(shop_database: str) -> None:
    with shopping(shop_database, orders=25, rate=1000, seed=1) as shop:
        until_closed(shop)

    assert number_of(shop_database, "shop.orders") == 25
    assert number_of(shop_database, "outboxd.outbox_events") == 50


def test_a_shop_without_end_closes_when_it_is_told_to(shop_database: str) -> None:
    with shopping(shop_database, orders=None, rate=1000, seed=1) as shop:
        while number_of(shop_database, "shop.orders") < 10:
            assert shop.closed is False


def test_customers_go_on_after_the_database_threw_them_out(shop_database: str) -> None:
    with (
        shopping(shop_database, orders=60, rate=200, seed=1) as shop,
        psycopg.connect(shop_database, autocommit=True) as operator,
    ):
        for made in range(10, 60, 10):
            while number_of(shop_database, "shop.orders") < made:
                assert shop.closed is False
            operator.execute(THROW_EVERYBODY_OUT)
        until_closed(shop)

    assert number_of(shop_database, "shop.orders") == 60
    assert number_of(shop_database, "outboxd.outbox_events") == 120


def test_what_ends_a_customer_ends_the_shop(bare_database: str) -> None:
    with (
        shopping(bare_database, orders=5, rate=1000, seed=1) as shop,
        pytest.raises(psycopg.errors.UndefinedTable),
    ):
        until_closed(shop)
