"""Customers, their carts and payments, and the gateway that reports them, for the shop's tests."""

import time
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

import msgspec
import psycopg

from handlers.events import PaymentSucceeded, ProcessPayment
from handlers.orders import Checkout, Line, create_order
from handlers.payments import Receipt, receive_webhook
from handlers.webhooks import sign
from outboxd import Event

P = TypeVar("P")

CART = (Line("serum-30", 2, 2450), Line("lip-balm", 1, 450))
COSTS = 5350

WAITING = """
    SELECT pid
      FROM pg_stat_activity
     WHERE datname = current_database()
       AND wait_event_type = 'Lock'
"""

SECRET = "whsec_of_the_tests"


def a_checkout(key: str = "key-1", lines: tuple[Line, ...] = CART) -> Checkout:
    return Checkout(customer_id=uuid4(), currency="SGD", lines=lines, idempotency_key=key)


def a_report(order_id: UUID | str, **changes: Any) -> bytes:
    """The body of a webhook; a change to None leaves the field out."""
    fields = {
        "type": "payment.succeeded",
        "event_id": "evt-1",
        "order_id": str(order_id),
        "transaction_id": "tx-1",
        "amount": COSTS,
        "currency": "SGD",
        "paid_at": "2026-01-02T03:04:05Z",
        **changes,
    }
    return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})


def webhook(connection: psycopg.Connection, body: bytes) -> Receipt:
    """What becomes of a webhook that the gateway has signed just now."""
    now = datetime.now(UTC)
    return receive_webhook(connection, sign(SECRET, body, now), body, secret=SECRET, now=now)


def a_paid_order(
    connection: psycopg.Connection, **changes: Any
) -> tuple[UUID, Event[PaymentSucceeded], Event[ProcessPayment]]:
    """An order whose payment the gateway has reported, and what that has put into the outbox."""
    order_id = create_order(connection, a_checkout(f"key-{uuid4()}"))
    return order_id, *a_reported_payment(connection, order_id, **changes)


def a_reported_payment(
    connection: psycopg.Connection, order_id: UUID, **changes: Any
) -> tuple[Event[PaymentSucceeded], Event[ProcessPayment]]:
    ids = {"event_id": f"evt-{uuid4()}", "transaction_id": f"tx-{uuid4()}"}
    webhook(connection, a_report(order_id, **ids, **changes))
    succeeded, job = connection.execute(
        "SELECT id, event_type, payload::text FROM outboxd.outbox_events ORDER BY seq DESC LIMIT 2"
    ).fetchall()[::-1]
    assert (succeeded[1], job[1]) == ("payment.succeeded", "process_payment")
    return told(succeeded, PaymentSucceeded), told(job, ProcessPayment)


def told(row: tuple[UUID, str, str], kind: type[P]) -> Event[P]:
    """A row of the outbox as its handlers are given it."""
    event_id, event_type, payload = row
    return Event(
        id=event_id,
        type=event_type,
        aggregate_type="order",
        aggregate_id="any",
        occurred_at=datetime.now(UTC),
        payload=msgspec.json.decode(payload, type=kind),
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


def types_told(connection: psycopg.Connection) -> list[str]:
    """The types of everything in the outbox, in order."""
    return [event_type for event_type, _ in outbox(connection)]


def payloads_of(connection: psycopg.Connection, event_type: str, kind: type[P]) -> list[P]:
    """The payloads of a type's events, as their handlers decode them, in order."""
    rows = connection.execute(
        "SELECT payload::text FROM outboxd.outbox_events WHERE event_type = %s ORDER BY seq",
        (event_type,),
    )
    return [msgspec.json.decode(text, type=kind) for (text,) in rows]


def payload_of(connection: psycopg.Connection, event_type: str, kind: type[P]) -> P:
    """The payload of the only event of a type."""
    (payload,) = payloads_of(connection, event_type, kind)
    return payload


def until_somebody_waits_for_a_lock(dsn: str) -> None:
    """For another transaction's, in this database; the test's timeout ends a wait in vain."""
    with psycopg.connect(dsn, autocommit=True) as observer:
        while observer.execute(WAITING).fetchone() is None:
            time.sleep(0.01)


def number_of(connection: psycopg.Connection, table: str) -> int:
    ((number,),) = connection.execute(f"SELECT count(*) FROM shop.{table}".encode()).fetchall()
    return int(number)
