"""A shop's web application in this process, and an account of what others have of the shop."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg

from handlers.api import create_app
from outboxd.demo.database import PLENTY
from outboxd.demo.flows import Elsewhere
from outboxd.demo.mail import Mail
from outboxd.demo.partners.book import Counts, Service
from outboxd.demo.s3_and_ses import Documents
from outboxd.demo.shopper import Purchase
from tests.shop.serving import served

SECRET = "whsec_of_the_demo"


@contextmanager
def open_shop(dsn: str) -> Iterator[httpx.Client]:
    """A client of the shop."""
    with served(create_app(dsn, webhook_secret=SECRET)) as client:
        yield client


def fill_shelves(shop: psycopg.Connection) -> None:
    shop.execute("UPDATE shop.stock SET on_hand = %s", (PLENTY,))


def buy(dsn: str, numbers: range) -> None:
    """The purchases of these numbers, complete."""
    with open_shop(dsn) as client:
        for number in numbers:
            Purchase(1, number).make(client, SECRET)


def elsewhere(
    *,
    told: frozenset[str] = frozenset(),
    payment_mail: Mail | None = None,
    courier: Counts | None = None,
    documents: Documents | None = None,
) -> Elsewhere:
    """Everybody has done their part for the orders `told`; and something else besides."""
    mail = Mail(orders=told, sent=len(told), message_ids=len(told))
    calls = Counts(requests=len(told), accepted=len(told), orders=len(told))
    return Elsewhere(
        payment_mail=payment_mail or mail,
        confirmation_mail=mail,
        documents=documents or Documents(stored=len(told), orders=len(told)),
        partners={
            Service.COURIER: courier or calls,
            Service.WHATSAPP: calls,
            Service.PUSH: calls,
        },
    )


def work_off(shop: psycopg.Connection) -> frozenset[str]:
    """What the daemon's handlers would leave in the tables; the orders that it was done for."""
    shop.execute("UPDATE outboxd.outbox_events SET published_at = now()")
    shop.execute("UPDATE shop.orders SET status = 'paid', paid_at = now()")
    shop.execute(
        "INSERT INTO shop.order_stock (order_id, state) SELECT id, 'sold' FROM shop.orders"
    )
    shop.execute(
        "INSERT INTO shop.reservations (id, order_id, sku, quantity, state)"
        " SELECT gen_random_uuid(), order_id, sku, quantity, 'sold' FROM shop.order_items"
    )
    shop.execute(
        "UPDATE shop.stock SET on_hand = on_hand"
        " - (SELECT coalesce(sum(quantity), 0) FROM shop.order_items WHERE sku = stock.sku)"
    )
    shop.execute(
        "INSERT INTO shop.shipments (id, order_id, tracking_number)"
        " SELECT gen_random_uuid(), id, 'SG1' FROM shop.orders"
    )
    shop.execute(
        "INSERT INTO shop.daily_sales (day, currency, orders, total_minor)"
        " SELECT current_date, currency, count(*), sum(total_minor) FROM shop.orders"
        " GROUP BY currency"
    )
    shop.execute(
        "INSERT INTO shop.effects (event_id, handler) SELECT id, 'payment.process'"
        " FROM outboxd.outbox_events WHERE event_type = 'process_payment'"
    )
    return frozenset(order_id for (order_id,) in shop.execute("SELECT id::text FROM shop.orders"))
