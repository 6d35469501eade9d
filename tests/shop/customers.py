"""Customers, their carts and payments, for the shop's tests."""

from datetime import UTC, datetime
from typing import TypeVar
from uuid import UUID, uuid4

import msgspec
import psycopg

from handlers.events import PaymentSucceeded
from handlers.orders import Checkout, Line
from handlers.payments import GatewayPayment
from outboxd import Event

P = TypeVar("P")

CART = (Line("serum-30", 2, 2450), Line("lip-balm", 1, 450))
COSTS = 5350


def a_checkout(key: str = "key-1", lines: tuple[Line, ...] = CART) -> Checkout:
    return Checkout(customer_id=uuid4(), currency="SGD", lines=lines, idempotency_key=key)


def a_payment(order_id: UUID, transaction_id: str = "tx-1", amount: int = COSTS) -> GatewayPayment:
    return GatewayPayment(
        order_id=order_id,
        transaction_id=transaction_id,
        amount=amount,
        currency="SGD",
        paid_at=datetime.now(UTC),
    )


def an_event(payload: P, occurred_at: datetime | None = None) -> Event[P]:
    return Event(
        id=uuid4(),
        type="any",
        aggregate_type="order",
        aggregate_id="any",
        occurred_at=occurred_at or datetime.now(UTC),
        payload=payload,
    )


def a_success(order_id: UUID, amount: int = COSTS) -> Event[PaymentSucceeded]:
    return an_event(
        PaymentSucceeded(
            order_id=order_id,
            payment_id=uuid4(),
            transaction_id="tx-1",
            paid_amount=amount,
            paid_at=datetime.now(UTC),
        )
    )


def outbox(connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Type and aggregate of every event in the outbox, in order."""
    return connection.execute(
        "SELECT event_type, aggregate_id FROM outboxd.outbox_events ORDER BY seq"
    ).fetchall()


def payload_of(connection: psycopg.Connection, event_type: str, kind: type[P]) -> P:
    """The payload of the only event of a type, as its handlers decode it."""
    ((text,),) = connection.execute(
        "SELECT payload::text FROM outboxd.outbox_events WHERE event_type = %s", (event_type,)
    ).fetchall()
    return msgspec.json.decode(text, type=kind)


def number_of(connection: psycopg.Connection, table: str) -> int:
    ((number,),) = connection.execute(f"SELECT count(*) FROM shop.{table}".encode()).fetchall()
    return int(number)
