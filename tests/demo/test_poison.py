"""Orders that cannot be worked off, among many that can: they alone are dead-lettered, and once
what was wrong with them is mended, a redrive completes them, once.

`ORDERS=500 pytest -m system tests/demo/test_poison.py` for more of the good ones.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import msgspec
import psycopg
import pytest
from msgspec import Struct

from handlers.events import (
    GENERATE_INVOICE_PDF,
    GenerateInvoicePdf,
    NotificationRequested,
    order_event,
)
from handlers.webhooks import GatewayReport, sign
from outboxd import NewJob, enqueue, publish
from outboxd.adapters.configuration import load_settings
from outboxd.cli.main import main
from outboxd.demo.observation import Observation, observer_of
from outboxd.demo.options import DemoOptions
from outboxd.demo.scene import Scene, scene
from outboxd.demo.shopping import shopping
from outboxd.demo.supervisor import Supervisor, supervising

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ORDERS = int(os.environ.get("ORDERS", "40"))
POISON = 3
"""Of each kind."""

ATTEMPTS = 6
"""Enough for a payment that overtakes its order, and for partners that are busy."""

PATIENCE_SECONDS = 300.0

RESTORED_ORDER = """
    INSERT INTO shop.orders (id, customer_id, status, currency, total_minor, idempotency_key,
                             paid_at, paid_by)
    VALUES (%(order_id)s, %(customer_id)s, 'paid', 'SGD', 890, %(order_id)s::text, now(),
            %(payment_id)s)
"""

RESTORED_LINE = """
    INSERT INTO shop.order_items (order_id, line, sku, quantity, unit_price_minor)
    VALUES (%s, 1, 'cleanser-150', 1, 890)
"""

RESTORED_PAYMENT = """
    INSERT INTO shop.payments (id, order_id, event_id, transaction_id, gateway_event_id,
                               amount_minor, currency, paid_at, applied_at)
    VALUES (%(payment_id)s, %(order_id)s, %(event_id)s, %(order_id)s::text, %(order_id)s::text,
            890, 'SGD', now(), now())
"""


class Poison(Struct, frozen=True, kw_only=True):
    """Orders, by what is wrong with them."""

    mismatched: frozenset[UUID]
    missing: frozenset[UUID]
    misdirected: frozenset[UUID]


@pytest.fixture
def opened() -> Iterator[Scene]:
    """The demo's shop, whose own daemon has stopped to make room for the tests'."""
    with scene(DemoOptions(), lambda _: None, lambda: False) as opened:
        assert opened.supervisor.stop() == 0
        text = opened.configuration.read_text()
        assert "max_attempts = 10" in text
        fewer = text.replace("max_attempts = 10", f"max_attempts = {ATTEMPTS}")
        opened.configuration.write_text(fewer)
        yield opened


@pytest.fixture
def shop(opened: Scene) -> Iterator[psycopg.Connection]:
    with psycopg.connect(opened.dsn, autocommit=True) as connection:
        yield connection


def daemon(opened: Scene) -> AbstractContextManager[Supervisor]:
    """The daemon with the configuration as it is now, while a block lasts."""
    settings = load_settings(opened.configuration, os.environ)
    return supervising(opened.configuration, settings, opened.log)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_poison_alone_is_dead_lettered_and_completed_once_by_a_redrive(
    opened: Scene, shop: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    observer = observer_of(opened)
    with daemon(opened):
        poison = poisoned(opened, shop)
        with shopping(opened.storefront, orders=ORDERS, rate=25, seed=1) as customers:
            until(lambda: customers.closed)
        until(lambda: idle(observer.look()))

        letters = all_letters(opened, capsys)
        assert_exactly_the_poison(letters, poison)
        good = observer.look().count
        assert good.orders == ORDERS + POISON
        assert good.flows["orders_paid"].got == ORDERS
        assert good.effects_duplicated == 0

    mend(opened, shop, poison)
    with daemon(opened):
        redrive_all(opened, letters)
        until(lambda: idle(observer.look()))

    assert all_letters(opened, capsys) == {}
    after = observer.look().count
    # For the orders that were restored there was an invoice to write, and nothing else to do.
    assert after.flows["orders_paid"].got == after.orders == ORDERS + 2 * POISON
    for flow in ("payments_processed", "shipments_requested", "push_sent", "whatsapp_sent"):
        assert after.flows[flow].got == ORDERS + POISON, flow
    assert after.flows["invoices_stored"].got == ORDERS + 2 * POISON
    assert after.analytics_total.got == after.analytics_total.expected - POISON * 890
    assert shipped_emails(opened.mail) == sorted(map(str, poison.misdirected))


def poisoned(opened: Scene, shop: psycopg.Connection) -> Poison:
    """Three of each kind."""
    with httpx.Client(base_url=opened.storefront.address, trust_env=False) as client:
        mismatched = [_pay_too_little(client, opened) for _ in range(POISON)]
    missing = [uuid4() for _ in range(POISON)]
    with shop.transaction():
        for order_id in missing:
            enqueue(shop, NewJob(GENERATE_INVOICE_PDF, GenerateInvoicePdf(order_id=order_id)))
        for order_id, customer_id in mismatched:
            wish = NotificationRequested(
                channel="email", template="shipped", customer_id=customer_id, order_id=order_id
            )
            publish(shop, order_event(wish))
    order_ids = frozenset(order_id for order_id, _ in mismatched)
    return Poison(mismatched=order_ids, missing=frozenset(missing), misdirected=order_ids)


def _pay_too_little(client: httpx.Client, opened: Scene) -> tuple[UUID, UUID]:
    customer_id, key = uuid4(), str(uuid4())
    checkout = {
        "customer_id": customer_id,
        "currency": "SGD",
        "lines": [{"sku": "serum-30", "quantity": 1, "unit_price": 2450}],
    }
    answer = client.post(
        "/v1/checkout", content=msgspec.json.encode(checkout), headers={"Idempotency-Key": key}
    )
    order_id = UUID(answer.raise_for_status().json()["order_id"])
    report = GatewayReport(
        type="payment.succeeded",
        event_id=key,
        order_id=order_id,
        transaction_id=key,
        amount=2400,
        currency="SGD",
        paid_at=datetime.now(UTC),
    )
    body = msgspec.json.encode(report)
    signature = sign(opened.storefront.webhook_secret, body, datetime.now(UTC))
    client.post("/v1/webhooks/payment", content=body, headers=signature).raise_for_status()
    return order_id, customer_id


def idle(seen: Observation) -> bool:
    """Nothing waits and nothing is to be tried again."""
    return seen.count.events_published == seen.count.events_committed and seen.count.quiet


def all_letters(opened: Scene, capsys: pytest.CaptureFixture[str]) -> dict[str, list[Any]]:
    """The dead letters of each queue that has any, as `outboxd dlq list` shows them."""
    letters = {}
    for queue in opened.settings.queues:
        capsys.readouterr()
        assert main(["dlq", "list", queue, "--json", "--config", str(opened.configuration)]) == 0
        found = json.loads(capsys.readouterr().out)["letters"]
        if found:
            letters[queue] = found
    return letters


def assert_exactly_the_poison(letters: dict[str, list[Any]], poison: Poison) -> None:
    errors = {
        queue: [(each["reason"], each["error"]) for each in found]
        for queue, found in letters.items()
    }
    assert {queue: len(found) for queue, found in errors.items()} == {
        "payment-events": POISON,
        "shipping-events": POISON,
        "notification-events": POISON,
        "jobs": POISON,
        "invoice-jobs": POISON,
    }
    for order_id in poison.mismatched:
        named = str(order_id)
        (refused,) = [each for each in errors["payment-events"] if named in each[1]]
        assert refused[0] == "rejected"
        assert "it costs 2450 SGD, and 2400 SGD was paid" in refused[1]
        (waited,) = [each for each in errors["jobs"] if named in each[1]]
        assert waited[0] == "max_attempts"
        assert "it costs 2450, and 2400 was paid" in waited[1]
        (kept,) = [each for each in errors["shipping-events"] if named in each[1]]
        assert "its payment has not been applied yet, or was refused" in kept[1]
    for order_id in poison.missing:
        (orphan,) = [each for each in errors["invoice-jobs"] if str(order_id) in each[1]]
        assert orphan[0] == "rejected"
        assert f"there is no order {order_id}" in orphan[1]
    for reason, error in errors["notification-events"]:
        assert reason == "rejected"
        assert "channel" in error
        assert "email" in error


def mend(opened: Scene, shop: psycopg.Connection, poison: Poison) -> None:
    """The price was wrong, the orders come back from a backup, and e-mail gets its transport."""
    wrong = (list(poison.mismatched),)
    shop.execute("UPDATE shop.orders SET total_minor = 2400 WHERE id = ANY(%s)", wrong)
    shop.execute(
        "UPDATE shop.order_items SET unit_price_minor = 2400 WHERE order_id = ANY(%s)", wrong
    )
    for order_id in poison.missing:
        restored = {
            "order_id": order_id,
            "customer_id": uuid4(),
            "payment_id": uuid4(),
            "event_id": uuid4(),
        }
        shop.execute(RESTORED_ORDER, restored)
        shop.execute(RESTORED_LINE, (order_id,))
        shop.execute(RESTORED_PAYMENT, restored)
    opened.configuration.write_text(_with_email(opened.configuration.read_text()))


def _with_email(text: str) -> str:
    """The options of ConfirmationEmail's transport for RequestedNotification as well."""
    lines = text.splitlines(keepends=True)
    (smtp,) = [line for line in lines if 'transport = "smtp"' in line]
    transport = smtp[smtp.index("transport") : smtp.rindex("}")].strip()
    (wishes,) = [index for index, line in enumerate(lines) if "whatsapp_url" in line]
    lines[wishes] = lines[wishes].replace("whatsapp_url", f"{transport}, whatsapp_url")
    return "".join(lines)


def redrive_all(opened: Scene, letters: dict[str, list[Any]]) -> None:
    for queue in letters:
        redrive = ["dlq", "redrive", queue, "--yes", "--config", str(opened.configuration)]
        assert main(redrive) == 0


def shipped_emails(maildir: Path) -> list[str]:
    """The orders that were told of by this template, one for each e-mail."""
    headers = [
        BytesHeaderParser().parsebytes(path.read_bytes()) for path in (maildir / "new").iterdir()
    ]
    return sorted(each["X-Order-ID"] for each in headers if each["X-Template"] == "shipped")
