"""The checkout: one order and one event, however often it is sent."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from handlers.events import OrderCreated
from handlers.orders import KeyReused, Line, create_order
from tests.shop.customers import COSTS, a_checkout, number_of, outbox, payload_of


def test_an_order_is_stored_with_its_lines_and_told_in_one_event(
    shop: psycopg.Connection,
) -> None:
    checkout = a_checkout()

    order_id = create_order(shop, checkout)

    assert outbox(shop) == [("order.created", str(order_id))]
    assert payload_of(shop, "order.created", OrderCreated) == OrderCreated(
        order_id=order_id, customer_id=checkout.customer_id, total=COSTS, currency="SGD"
    )
    assert shop.execute("SELECT id, status, total_minor FROM shop.orders").fetchall() == [
        (order_id, "pending", COSTS)
    ]
    assert shop.execute(
        "SELECT line, sku, quantity, unit_price_minor FROM shop.order_items ORDER BY line"
    ).fetchall() == [(1, "serum-30", 2, 2450), (2, "lip-balm", 1, 450)]


def test_a_repeated_checkout_finds_its_order_and_publishes_nothing(
    shop: psycopg.Connection,
) -> None:
    checkout = a_checkout()

    assert create_order(shop, checkout) == create_order(shop, checkout)

    assert len(outbox(shop)) == 1
    assert number_of(shop, "order_items") == 2


def test_the_price_of_an_order_is_that_of_its_checkout(shop: psycopg.Connection) -> None:
    create_order(shop, a_checkout("before", (Line("lip-balm", 1, 450),)))
    create_order(shop, a_checkout("after", (Line("lip-balm", 1, 500),)))

    prices = shop.execute("SELECT unit_price_minor FROM shop.order_items").fetchall()
    assert sorted(prices) == [(450,), (500,)]


def test_a_key_that_belongs_to_another_checkout_is_refused(shop: psycopg.Connection) -> None:
    create_order(shop, a_checkout("same"))

    with pytest.raises(KeyReused, match="'same' belongs to another checkout"):
        create_order(shop, a_checkout("same"))

    assert len(outbox(shop)) == 1


def test_nothing_is_left_of_a_checkout_whose_transaction_fails(shop: psycopg.Connection) -> None:
    with shop.transaction():
        create_order(shop, a_checkout())
        raise psycopg.Rollback

    assert outbox(shop) == []
    assert number_of(shop, "orders") == 0


def test_copies_of_a_checkout_that_arrive_together_make_one_order(shop_database: str) -> None:
    checkout = a_checkout()

    def send(_: int) -> object:
        with psycopg.connect(shop_database) as connection:
            return create_order(connection, checkout)

    with ThreadPoolExecutor(8) as browsers:
        assert len(set(browsers.map(send, range(8)))) == 1

    with psycopg.connect(shop_database) as connection:
        assert len(outbox(connection)) == 1
