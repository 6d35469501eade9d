"""The demo's arithmetic: what was ordered, what became of it, and what must not be there."""

from collections.abc import Iterator

import psycopg
import pytest

from outboxd.demo.flows import Flow, count_flows
from outboxd.demo.mail import Mail
from outboxd.demo.partners.book import Counts
from outboxd.demo.s3_and_ses import Documents
from tests.demo.shop import buy, elsewhere, fill_shelves, work_off

ORDERS = 3


@pytest.fixture
def shop(shop_database: str) -> Iterator[psycopg.Connection]:
    """Three purchases, none of which anything has become of yet."""
    buy(shop_database, range(1, ORDERS + 1))
    with psycopg.connect(shop_database, autocommit=True) as connection:
        fill_shelves(connection)
        yield connection


def lines_of(shop: psycopg.Connection) -> int:
    ((lines,),) = shop.execute("SELECT count(*) FROM shop.order_items").fetchall()
    return int(lines)


def total_of(shop: psycopg.Connection) -> int:
    ((total,),) = shop.execute("SELECT sum(total_minor)::bigint FROM shop.orders").fetchall()
    return int(total)


def test_before_anything_has_happened_everything_is_missing(shop: psycopg.Connection) -> None:
    lines = lines_of(shop)

    flows = count_flows(shop, elsewhere())

    assert flows.orders == ORDERS
    assert flows.by_name == {
        "orders_paid": Flow(ORDERS, 0),
        "payments_processed": Flow(ORDERS, 0),
        "stock_reserved": Flow(lines, 0),
        "stock_sold": Flow(lines, 0),
        "emails_sent": Flow(ORDERS, 0),
        "confirmations_sent": Flow(ORDERS, 0),
        "whatsapp_sent": Flow(ORDERS, 0),
        "push_sent": Flow(ORDERS, 0),
        "shipments_requested": Flow(ORDERS, 0),
        "invoices_stored": Flow(ORDERS, 0),
        "sales_counted": Flow(ORDERS, 0),
    }
    assert flows.effects_missing == flows.effects_expected == 9 * ORDERS + 2 * lines
    assert flows.analytics_total == Flow(total_of(shop), 0)
    assert sum(flows.events_expected.values()) == 8 * ORDERS + lines
    assert flows.events_expected["stock.reserved"] == lines
    assert (flows.duplicated, flows.wrong_shelves, flows.refunds) == (0, 0, 0)


def test_when_all_is_done_nothing_is_missing(shop: psycopg.Connection) -> None:
    flows = count_flows(shop, elsewhere(told=work_off(shop)))

    assert (flows.effects_missing, flows.duplicated, flows.wrong_shelves) == (0, 0, 0)
    assert flows.analytics_total == Flow(total_of(shop), total_of(shop))


@pytest.mark.parametrize(
    ("undo", "flow"),
    [
        ("UPDATE shop.orders SET status = 'pending' WHERE {one}", "orders_paid"),
        ("DELETE FROM shop.effects WHERE seq = 1", "payments_processed"),
        ("UPDATE shop.reservations SET state = 'reserved' WHERE {first}", "stock_sold"),
        (
            "DELETE FROM shop.shipments WHERE order_id IN (SELECT id FROM shop.orders WHERE {one})",
            "shipments_requested",
        ),
        ("UPDATE shop.daily_sales SET orders = orders - 1", "sales_counted"),
    ],
)
def test_what_one_flow_did_not_do_is_missing_in_that_one(
    shop: psycopg.Connection, undo: str, flow: str
) -> None:
    told = work_off(shop)
    undo = undo.format(
        one="id = (SELECT id FROM shop.orders LIMIT 1)",
        first="id = (SELECT id FROM shop.reservations LIMIT 1)",
    )
    shop.execute(undo.encode())

    flows = count_flows(shop, elsewhere(told=told))

    assert {name for name, each in flows.by_name.items() if each.missing} == {flow}
    assert flows.effects_missing == 1


def test_an_order_whose_event_vanished_is_missed_all_the_same(shop: psycopg.Connection) -> None:
    shop.execute("DELETE FROM outboxd.outbox_events")

    flows = count_flows(shop, elsewhere())

    assert flows.effects_missing == flows.effects_expected > 0


def test_money_that_was_counted_twice_is_too_much(shop: psycopg.Connection) -> None:
    told = work_off(shop)
    shop.execute("UPDATE shop.daily_sales SET total_minor = total_minor + 450")

    assert count_flows(shop, elsewhere(told=told)).analytics_total.too_many == 450


def test_an_effect_that_happened_three_times_is_two_too_many(shop: psycopg.Connection) -> None:
    told = work_off(shop)
    for _ in range(2):
        shop.execute(
            "INSERT INTO shop.effects (event_id, handler)"
            " SELECT event_id, handler FROM shop.effects WHERE seq = 1"
        )

    flows = count_flows(shop, elsewhere(told=told))

    assert (flows.effects_missing, flows.duplicated) == (0, 2)


def test_an_email_that_was_sent_again_is_repeated_and_not_duplicated(
    shop: psycopg.Connection,
) -> None:
    told = work_off(shop)
    mail = Mail(orders=told, sent=ORDERS + 2, message_ids=ORDERS)

    flows = count_flows(shop, elsewhere(told=told, payment_mail=mail))

    assert flows.by_name["emails_sent"] == Flow(ORDERS, ORDERS, repeated=2)
    assert flows.duplicated == 0


def test_a_second_email_under_another_message_id_is_a_duplicate(shop: psycopg.Connection) -> None:
    told = work_off(shop)
    mail = Mail(orders=told, sent=ORDERS + 1, message_ids=ORDERS + 1)

    assert count_flows(shop, elsewhere(told=told, payment_mail=mail)).duplicated == 1


def test_one_orders_second_parcel_does_not_stand_for_anothers_first(
    shop: psycopg.Connection,
) -> None:
    told = work_off(shop)
    courier = Counts(accepted=ORDERS, orders=ORDERS - 1, repeated=4)

    flows = count_flows(shop, elsewhere(told=told, courier=courier))

    assert flows.by_name["shipments_requested"] == Flow(ORDERS, ORDERS - 1, repeated=4)
    assert flows.duplicated == 1


def test_a_parcel_that_the_courier_does_not_know_of_is_missing(shop: psycopg.Connection) -> None:
    told = work_off(shop)

    flows = count_flows(shop, elsewhere(told=told, courier=Counts()))

    assert flows.by_name["shipments_requested"].missing == ORDERS


def test_two_invoices_of_one_order_are_one_too_many(shop: psycopg.Connection) -> None:
    told = work_off(shop)
    documents = Documents(stored=ORDERS, orders=ORDERS - 1)

    flows = count_flows(shop, elsewhere(told=told, documents=documents))

    assert flows.by_name["invoices_stored"].missing == 1
    assert flows.duplicated == 1


@pytest.mark.parametrize("column", ["on_hand", "reserved"])
def test_a_shelf_that_was_touched_once_too_often_is_wrong(
    shop: psycopg.Connection, column: str
) -> None:
    told = work_off(shop)
    shop.execute(f"UPDATE shop.stock SET {column} = {column} + 1 WHERE sku = 'serum-30'".encode())

    assert count_flows(shop, elsewhere(told=told)).wrong_shelves == 1


def test_a_refund_is_told_as_nobody_is_owed_one(shop: psycopg.Connection) -> None:
    told = work_off(shop)
    shop.execute(
        "INSERT INTO shop.refunds (payment_id, order_id, amount_minor, currency, reason)"
        " SELECT id, order_id, amount_minor, currency, 'by mistake' FROM shop.payments LIMIT 1"
    )

    assert count_flows(shop, elsewhere(told=told)).refunds == 1
