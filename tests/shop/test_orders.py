"""The checkout: one order and one event, however often it is sent, at the prices of the moment."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import msgspec
import psycopg
import pytest

from handlers.events import OrderCancelled, OrderCreated, PaymentRefundDue
from handlers.orders import KeyReused, Line, UnknownOrder, cancel_order, create_order
from handlers.payments import mark_paid
from handlers.prices import NewPrice, PriceChanged, UnknownProduct
from outboxd import Done
from outboxd.testing import run
from tests.shop.customers import (
    COSTS,
    a_checkout,
    a_paid_order,
    number_of,
    outbox,
    payload_of,
    types_told,
    until_somebody_waits_for_a_lock,
)

SET_PRICE = "UPDATE shop.products SET price_minor = %s WHERE sku = %s"


def nothing_is_stored(shop: psycopg.Connection) -> bool:
    return outbox(shop) == [] and number_of(shop, "orders") == number_of(shop, "order_items") == 0


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
        "SELECT line, sku, quantity, unit_price_minor, name FROM shop.order_items ORDER BY line"
    ).fetchall() == [
        (1, "serum-30", 2, 2450, "Vitamin C Serum 30 ml"),
        (2, "lip-balm", 1, 450, "Lip Balm"),
    ]


def test_a_repeated_checkout_finds_its_order_and_publishes_nothing(
    shop: psycopg.Connection,
) -> None:
    checkout = a_checkout()

    assert create_order(shop, checkout) == create_order(shop, checkout)

    assert len(outbox(shop)) == 1
    assert number_of(shop, "order_items") == 2


def test_a_checkout_that_is_repeated_after_its_prices_changed_finds_its_order(
    shop: psycopg.Connection,
) -> None:
    checkout = a_checkout()
    order_id = create_order(shop, checkout)
    shop.execute(SET_PRICE, (500, "lip-balm"))

    assert create_order(shop, checkout) == order_id

    prices = shop.execute("SELECT unit_price_minor FROM shop.order_items ORDER BY line")
    assert prices.fetchall() == [(2450,), (450,)]


@pytest.mark.parametrize("seen", [449, 451, 0])
def test_a_price_that_the_customer_has_not_seen_is_not_charged(
    shop: psycopg.Connection, seen: int
) -> None:
    lines = (Line("serum-30", 1, 2450), Line("lip-balm", 1, seen))

    with pytest.raises(PriceChanged, match=f"lip-balm costs 450, not {seen}") as refused:
        create_order(shop, a_checkout(lines=lines))

    assert refused.value.prices == (NewPrice(sku="lip-balm", seen=seen, current=450),)
    assert nothing_is_stored(shop)


def test_a_line_hides_no_other_price_of_the_same_article(shop: psycopg.Connection) -> None:
    lines = (Line("lip-balm", 100, 1), Line("lip-balm", 1, 450))

    with pytest.raises(PriceChanged):
        create_order(shop, a_checkout(lines=lines))

    assert nothing_is_stored(shop)


def test_an_article_may_be_on_two_lines(shop: psycopg.Connection) -> None:
    create_order(shop, a_checkout(lines=(Line("lip-balm", 1, 450), Line("lip-balm", 2, 450))))

    assert payload_of(shop, "order.created", OrderCreated).total == 1350


def test_a_checkout_that_was_refused_for_its_price_can_be_sent_with_the_new_one(
    shop: psycopg.Connection,
) -> None:
    with pytest.raises(PriceChanged):
        create_order(shop, a_checkout("again", (Line("lip-balm", 1, 400),)))

    create_order(shop, a_checkout("again", (Line("lip-balm", 1, 450),)))

    assert types_told(shop) == ["order.created"]


def test_a_price_that_is_being_changed_is_waited_for(shop_database: str) -> None:
    def check_out() -> object:
        with psycopg.connect(shop_database) as connection:
            return create_order(connection, a_checkout())

    with psycopg.connect(shop_database) as merchant, ThreadPoolExecutor(1) as browser:
        merchant.execute(SET_PRICE, (500, "lip-balm"))
        order = browser.submit(check_out)
        until_somebody_waits_for_a_lock(shop_database)
        merchant.commit()

        with pytest.raises(PriceChanged):
            order.result()


def test_an_article_that_is_not_for_sale_is_named(shop: psycopg.Connection) -> None:
    lines = (Line("lip-balm", 1, 450), Line("soap", 1, 100))

    with pytest.raises(UnknownProduct, match="not for sale in SGD: soap"):
        create_order(shop, a_checkout(lines=lines))

    assert nothing_is_stored(shop)


def test_a_key_that_belongs_to_another_checkout_is_refused(shop: psycopg.Connection) -> None:
    checkout = a_checkout("same")
    create_order(shop, checkout)
    lines = (Line("lip-balm", 1, 450),)

    with pytest.raises(KeyReused, match="'same' belongs to another checkout"):
        create_order(shop, msgspec.structs.replace(checkout, lines=lines))

    assert len(outbox(shop)) == 1


def test_a_key_of_one_customer_is_none_of_another(shop: psycopg.Connection) -> None:
    assert create_order(shop, a_checkout("same")) != create_order(shop, a_checkout("same"))

    assert len(outbox(shop)) == 2


def test_another_cart_of_the_same_customer_and_total_is_another_checkout(
    shop: psycopg.Connection,
) -> None:
    checkout = a_checkout(lines=(Line("lip-balm", 1, 450), Line("lip-balm", 1, 450)))
    create_order(shop, checkout)
    lines = (Line("lip-balm", 2, 450),)

    with pytest.raises(KeyReused):
        create_order(shop, msgspec.structs.replace(checkout, lines=lines))


def test_nothing_is_left_of_a_checkout_whose_transaction_fails(shop: psycopg.Connection) -> None:
    with shop.transaction():
        create_order(shop, a_checkout())
        raise psycopg.Rollback

    assert nothing_is_stored(shop)


def test_copies_of_a_checkout_that_arrive_together_make_one_order(shop_database: str) -> None:
    checkout = a_checkout()

    def send(_: int) -> object:
        with psycopg.connect(shop_database) as connection:
            return create_order(connection, checkout)

    with ThreadPoolExecutor(8) as browsers:
        assert len(set(browsers.map(send, range(8)))) == 1

    with psycopg.connect(shop_database) as connection:
        assert len(outbox(connection)) == 1


def test_a_pending_order_that_is_cancelled_is_told_once(shop: psycopg.Connection) -> None:
    order_id = create_order(shop, a_checkout())

    assert cancel_order(shop, order_id, "changed my mind") is True
    assert cancel_order(shop, order_id, "changed my mind") is False

    assert types_told(shop) == ["order.created", "order.cancelled"]
    assert payload_of(shop, "order.cancelled", OrderCancelled) == OrderCancelled(
        order_id=order_id, reason="changed my mind"
    )
    assert shop.execute("SELECT status FROM shop.orders").fetchall() == [("cancelled",)]
    assert number_of(shop, "refunds") == 0


def test_a_paid_order_that_is_cancelled_has_to_be_given_back(shop: psycopg.Connection) -> None:
    order_id, succeeded, _ = a_paid_order(shop)
    assert run(mark_paid, succeeded, tx=shop) == Done()

    cancel_order(shop, order_id, "out of stock")

    assert payload_of(shop, "payment.refund_due", PaymentRefundDue) == PaymentRefundDue(
        order_id=order_id,
        payment_id=succeeded.payload.payment_id,
        amount=COSTS,
        reason="the order is cancelled",
    )
    assert number_of(shop, "refunds") == 1


@pytest.mark.parametrize("reason", ["", "customer said: " + "x" * 300])
def test_a_reason_that_no_event_can_carry_is_refused_before_anything_is_stored(
    shop: psycopg.Connection, reason: str
) -> None:
    order_id = create_order(shop, a_checkout())

    with pytest.raises(msgspec.ValidationError, match=r"of length .* - at `\$.reason`"):
        cancel_order(shop, order_id, reason)

    assert shop.execute("SELECT status FROM shop.orders").fetchall() == [("pending",)]
    assert cancel_order(shop, order_id, "changed my mind") is True
    assert payload_of(shop, "order.cancelled", OrderCancelled).reason == "changed my mind"


def test_an_order_that_is_not_there_cannot_be_cancelled(shop: psycopg.Connection) -> None:
    with pytest.raises(UnknownOrder):
        cancel_order(shop, uuid4(), "whatever")
