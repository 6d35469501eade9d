"""Everybody that the shop talks to, for the tests of notifications and shipping."""

import asyncio
import email
import email.policy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID, uuid4

import psycopg
from aiosmtpd.smtp import SMTP

from handlers.events import PaymentSucceeded
from outboxd import Event
from outboxd.demo.partners.book import Service
from outboxd.demo.partners.client import Partners

CUSTOMER = UUID("11111111-1111-4111-8111-111111111111")

SENDER = "Shop <orders@shop.example>"


class Closable(Protocol):
    def close(self) -> None: ...


def an_order(
    shop: psycopg.Connection,
    status: str = "paid",
    currency: str = "SGD",
    total: int = 5350,
    stock: str | None = "sold",
) -> UUID:
    """An order of CUSTOMER in this state, as the checkout, the payment and the stock leave it."""
    order_id = uuid4()
    shop.execute(
        "INSERT INTO shop.orders (id, customer_id, status, currency, total_minor, idempotency_key,"
        " paid_at) VALUES (%s, %s, %s, %s, %s, %s, %s)",
        (order_id, CUSTOMER, status, currency, total, str(order_id), datetime.now(UTC)),
    )
    if stock is not None:
        shop.execute(
            "INSERT INTO shop.order_stock (order_id, state) VALUES (%s, %s)", (order_id, stock)
        )
    return order_id


def a_payment_of(order_id: UUID) -> Event[PaymentSucceeded]:
    payload = PaymentSucceeded(
        order_id=order_id,
        payment_id=uuid4(),
        transaction_id="tx-1",
        paid_amount=5350,
        paid_at=datetime.now(UTC),
    )
    return Event(
        id=uuid4(),
        type="payment.succeeded",
        aggregate_type="order",
        aggregate_id=str(order_id),
        occurred_at=datetime.now(UTC),
        payload=payload,
    )


@contextmanager
def failing_inserts(shop: psycopg.Connection, table: str) -> Iterator[None]:
    """What a crash before the commit looks like to everybody else: nothing is stored."""
    shop.execute(
        "CREATE FUNCTION shop.crash() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN RAISE EXCEPTION 'crash'; END $$"
    )
    shop.execute(
        f"CREATE TRIGGER crash BEFORE INSERT ON shop.{table} "
        "FOR EACH ROW EXECUTE FUNCTION shop.crash()".encode()
    )
    try:
        yield
    finally:
        shop.execute("DROP FUNCTION shop.crash CASCADE")


def statuses(partners: Partners, service: Service, key: str) -> list[int]:
    """How each request with this key ended, in order; 0 is a connection that was cut."""
    requests = partners.requests()
    return [each.status for each in requests if (each.service, each.key) == (service, key)]


def delivered(maildir: Path) -> list[EmailMessage]:
    return [
        email.message_from_bytes(path.read_bytes(), EmailMessage, policy=email.policy.default)
        for path in sorted((maildir / "new").iterdir())
    ]


@contextmanager
def mail_server(handler: Any, **settings: Any) -> Iterator[tuple[str, int]]:
    """A mail server that behaves as `handler` says (aiosmtpd's hooks); host and port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def start() -> asyncio.Server:
        return await loop.create_server(
            lambda: SMTP(handler, hostname="mail.example", loop=loop, **settings), "127.0.0.1", 0
        )

    async def stop(server: asyncio.Server) -> None:
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        asyncio.run_coroutine_threadsafe(stop(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def together(work: Callable[[], object], times: int) -> list[object]:
    """What the same work returns when several threads do it at once."""
    barrier = threading.Barrier(times)
    results: list[object] = []

    def run() -> None:
        barrier.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
