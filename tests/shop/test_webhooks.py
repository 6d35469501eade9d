"""The payment gateway's webhook: what is believed is stored once, what is not leaves nothing."""

import hashlib
import hmac
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any
from uuid import UUID

import msgspec
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.events import PaymentSucceeded, ProcessPayment
from handlers.orders import create_order
from handlers.payments import (
    Receipt,
    SignatureInvalid,
    UnknownOrder,
    WebhookExpired,
    WebhookMalformed,
    WebhookRefused,
    WebhookReplayed,
    receive_webhook,
)
from handlers.webhooks import SIGNATURE_HEADER, parse, sign
from tests.shop.customers import (
    COSTS,
    SECRET,
    a_checkout,
    a_report,
    number_of,
    payload_of,
    types_told,
    webhook,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOBODYS = UUID("8d7bb1a6-2c0e-4b4f-9f3a-1f0f0c9f5a11")
"""An order that is in no shop."""

BODY = a_report(NOBODYS)


def refused(
    shop: psycopg.Connection, headers: dict[str, str], body: bytes, now: datetime = NOW
) -> WebhookRefused:
    """Why the webhook is refused, having seen that it leaves nothing."""
    with pytest.raises(WebhookRefused) as refusal:
        receive_webhook(shop, headers, body, secret=SECRET, now=now)
    assert number_of(shop, "payments") == 0
    assert types_told(shop) == []
    return refusal.value


def signature(secret: str, body: bytes, now: datetime = NOW) -> str:
    return sign(secret, body, now)[SIGNATURE_HEADER]


def test_a_report_is_stored_with_its_event_and_its_job(shop: psycopg.Connection) -> None:
    order_id = create_order(shop, a_checkout())

    assert webhook(shop, a_report(order_id)) is Receipt.NEW

    assert types_told(shop) == ["order.created", "payment.succeeded", "process_payment"]
    ((payment_id, event_id, *stored),) = shop.execute(
        "SELECT id, event_id, order_id, gateway_event_id, transaction_id, amount_minor, currency,"
        "       paid_at, applied_at FROM shop.payments"
    ).fetchall()
    assert stored == [order_id, "evt-1", "tx-1", COSTS, "SGD", NOW, None]
    assert payload_of(shop, "payment.succeeded", PaymentSucceeded) == PaymentSucceeded(
        order_id=order_id,
        payment_id=payment_id,
        transaction_id="tx-1",
        paid_amount=COSTS,
        paid_at=NOW,
    )
    assert payload_of(shop, "process_payment", ProcessPayment).event_id == event_id
    assert shop.execute(
        "SELECT event_type FROM outboxd.outbox_events WHERE id = %s", (event_id,)
    ).fetchall() == [("payment.succeeded",)]


def test_the_signature_is_hmac_sha256_over_time_and_body() -> None:
    """Written down a second time: `sign` and `verify` would agree on anything."""
    expected = hmac.new(SECRET.encode(), b"1767323045." + BODY, hashlib.sha256).hexdigest()

    assert sign(SECRET, BODY, NOW) == {"Gateway-Signature": f"t=1767323045,v1={expected}"}


@pytest.mark.parametrize(
    "header",
    [
        signature("another secret", BODY),
        signature(SECRET, BODY + b" "),
        signature(SECRET, BODY, NOW - timedelta(seconds=1)).replace("t=1767323044", "t=1767323045"),
        signature(SECRET, BODY).replace("v1=", "v0="),
        signature(SECRET, BODY).upper(),
        signature(SECRET, BODY)[:-1],
        signature(SECRET, BODY).replace("t=", "t=0"),
        signature(SECRET, BODY) + ",t=1767323045",
        signature(SECRET, BODY).partition(",")[2],
        "t=1767323045",
        "t=1767323045,v1=",
        "t=1767323045,v1=é",
        "t=now,v1=00",
        "t=²,v1=00",
        "t=-1,v1=00",
        pytest.param("t=" + "9" * 5000 + ",v1=00", id="a number that Python does not read"),
        "t=1767323045,v1=00,\N{FULLWIDTH LATIN SMALL LETTER V}1=00",
        "garbage",
        ",",
        "",
    ],
)
def test_a_forged_webhook_leaves_nothing(shop: psycopg.Connection, header: str) -> None:
    assert isinstance(refused(shop, {SIGNATURE_HEADER: header}, BODY), SignatureInvalid)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Signature": signature(SECRET, BODY)},
        {SIGNATURE_HEADER: signature(SECRET, BODY), "gateway-signature": "t=1,v1=00"},
    ],
)
def test_a_webhook_without_its_one_header_leaves_nothing(
    shop: psycopg.Connection, headers: dict[str, str]
) -> None:
    assert isinstance(refused(shop, headers, BODY), SignatureInvalid)


@pytest.mark.parametrize("first", [True, False])
def test_while_the_secret_is_changed_one_good_signature_is_enough(
    shop: psycopg.Connection, first: bool
) -> None:
    body = a_report(create_order(shop, a_checkout()))
    time, good = signature(SECRET, body).split(",")
    other = signature("the next secret", body).split(",")[1]
    values = [good, other] if first else [other, good]

    headers = {"gateway-signature": ", ".join([time, *values, "v2=whatever"])}

    assert receive_webhook(shop, headers, body, secret=SECRET, now=NOW) is Receipt.NEW


@given(text=st.text() | st.from_regex(r"(t=[0-9]*|v1=[0-9a-f]*|,| )*", fullmatch=True))
def test_a_header_of_any_text_is_understood_or_refused(text: str) -> None:
    try:
        signature = parse(text)
    except SignatureInvalid:
        return
    assert signature.time.isdecimal()
    assert signature.values


@pytest.mark.parametrize("age", [300.9, 301, 3600, -301])
def test_an_expired_webhook_leaves_nothing(shop: psycopg.Connection, age: float) -> None:
    late = NOW + timedelta(seconds=age)

    assert isinstance(refused(shop, sign(SECRET, BODY, NOW), BODY, late), WebhookExpired)


@pytest.mark.parametrize("age", [300, -300, 0])
def test_a_webhook_within_the_window_is_believed(shop: psycopg.Connection, age: float) -> None:
    body = a_report(create_order(shop, a_checkout()))
    now = NOW + timedelta(seconds=age)

    assert receive_webhook(shop, sign(SECRET, body, NOW), body, secret=SECRET, now=now) is (
        Receipt.NEW
    )


def test_an_expired_forgery_learns_nothing_of_our_clock(shop: psycopg.Connection) -> None:
    headers = sign("another secret", BODY, NOW - timedelta(days=1))

    assert isinstance(refused(shop, headers, BODY), SignatureInvalid)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b"{",
        b"\xff\xfe",
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"added": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", id="deep field"),
        a_report(NOBODYS, type=None),
        a_report(NOBODYS, type=""),
        a_report(NOBODYS, type=17),
        a_report(NOBODYS, type="payment.failed\n"),
        a_report(NOBODYS, type="x" * 256),
        a_report(NOBODYS, event_id=None),
        a_report(NOBODYS, event_id=""),
        a_report(NOBODYS, event_id="evt\0"),
        a_report(NOBODYS, transaction_id="tx\n"),
        a_report(NOBODYS, transaction_id="x" * 256),
        a_report(NOBODYS, amount=0),
        a_report(NOBODYS, amount=-1),
        a_report(NOBODYS, amount=53.5),
        a_report(NOBODYS, amount="5350"),
        a_report(NOBODYS, amount=10**30),
        a_report(NOBODYS, currency="sgd"),
        a_report(NOBODYS, paid_at="2026-01-02T03:04:05"),
        a_report(NOBODYS, paid_at="2026-01-02T03:09:06Z"),
        a_report(NOBODYS, paid_at="1999-12-31T23:59:59Z"),
        a_report(NOBODYS, paid_at="0001-01-01T00:00:00+23:59"),
        a_report(NOBODYS, paid_at="9999-12-31T23:59:59-23:59"),
        a_report("17"),
    ],
)
def test_a_malformed_webhook_leaves_nothing(shop: psycopg.Connection, body: bytes) -> None:
    assert isinstance(refused(shop, sign(SECRET, body, NOW), body), WebhookMalformed)


@pytest.mark.parametrize(
    "body",
    [
        a_report(NOBODYS, type="payment.failed"),
        a_report(NOBODYS, type="refund.succeeded", amount=-5350),
        b'{"type": "account.updated"}',
    ],
)
def test_what_the_gateway_tells_besides_is_a_success_that_stores_nothing(
    shop: psycopg.Connection, caplog: pytest.LogCaptureFixture, body: bytes
) -> None:
    with caplog.at_level("INFO", "handlers.webhooks"):
        assert webhook(shop, body) is Receipt.IGNORED

    assert types_told(shop) == []
    assert number_of(shop, "payments") == 0
    (record,) = caplog.records
    assert record.__dict__["report_type"] == msgspec.json.decode(body)["type"]


def test_what_the_gateway_tells_besides_has_to_be_signed_as_well(shop: psycopg.Connection) -> None:
    body = a_report(NOBODYS, type="payment.failed")

    assert isinstance(refused(shop, sign("another secret", body, NOW), body), SignatureInvalid)


def test_an_empty_secret_is_a_mistake_of_ours(shop: psycopg.Connection) -> None:
    with pytest.raises(ValueError, match="the webhook secret is empty"):
        receive_webhook(shop, sign("", BODY, NOW), BODY, secret="", now=NOW)


def test_what_the_gateway_adds_to_its_report_is_ignored(shop: psycopg.Connection) -> None:
    order_id = create_order(shop, a_checkout())

    assert webhook(shop, a_report(order_id, livemode=True, fee={"amount": 12})) is Receipt.NEW


def test_a_payment_of_an_order_that_is_not_there_leaves_nothing(shop: psycopg.Connection) -> None:
    with pytest.raises(UnknownOrder):
        webhook(shop, BODY)

    assert number_of(shop, "payments") == 0
    assert types_told(shop) == []


@pytest.mark.parametrize(
    "again",
    [
        {},
        {"attempt": 2},
        {"event_id": "evt-2"},
        {"paid_at": "2026-01-02T11:04:05+08:00"},
    ],
)
def test_a_duplicate_is_a_success_without_an_event(
    shop: psycopg.Connection, again: dict[str, Any]
) -> None:
    order_id = create_order(shop, a_checkout())
    webhook(shop, a_report(order_id))

    assert webhook(shop, a_report(order_id, **again)) is Receipt.DUPLICATE

    assert types_told(shop) == ["order.created", "payment.succeeded", "process_payment"]
    assert number_of(shop, "payments") == 1


@pytest.mark.parametrize(
    "again",
    [
        {"transaction_id": "tx-2"},
        {"amount": COSTS - 1},
        {"currency": "USD"},
        {"event_id": "evt-2", "amount": COSTS + 1},
    ],
)
def test_a_replay_that_says_something_else_is_refused(
    shop: psycopg.Connection, again: dict[str, Any]
) -> None:
    order_id = create_order(shop, a_checkout())
    webhook(shop, a_report(order_id))

    with pytest.raises(WebhookReplayed, match="says something else"):
        webhook(shop, a_report(order_id, **again))

    assert types_told(shop) == ["order.created", "payment.succeeded", "process_payment"]
    assert number_of(shop, "payments") == 1


@pytest.mark.parametrize("ids", [{}, {"event_id": "evt-2"}, {"transaction_id": "tx-2"}])
def test_a_report_is_not_moved_to_another_order(
    shop: psycopg.Connection, ids: dict[str, str]
) -> None:
    webhook(shop, a_report(create_order(shop, a_checkout("one"))))
    other = create_order(shop, a_checkout("other"))

    with pytest.raises(WebhookReplayed):
        webhook(shop, a_report(other, **ids))

    assert number_of(shop, "payments") == 1


def test_the_ids_of_two_reports_do_not_make_a_third(shop: psycopg.Connection) -> None:
    order_id = create_order(shop, a_checkout())
    webhook(shop, a_report(order_id))
    webhook(shop, a_report(order_id, event_id="evt-2", transaction_id="tx-2"))

    with pytest.raises(WebhookReplayed):
        webhook(shop, a_report(order_id, transaction_id="tx-2"))

    assert number_of(shop, "payments") == 2


def test_a_webhook_that_arrives_five_times_at_once_is_one_payment_and_one_event(
    shop: psycopg.Connection, shop_database: str
) -> None:
    body = a_report(create_order(shop, a_checkout()))
    together = Barrier(5)

    def send(_: int) -> Receipt:
        with psycopg.connect(shop_database) as connection:
            together.wait()
            return webhook(connection, body)

    with ThreadPoolExecutor(5) as gateways:
        receipts = sorted(receipt.value for receipt in gateways.map(send, range(5)))

    assert receipts == ["duplicate"] * 4 + ["new"]
    assert types_told(shop) == ["order.created", "payment.succeeded", "process_payment"]
    assert number_of(shop, "payments") == 1


def test_a_failure_after_the_payment_leaves_neither_event_nor_payment(
    shop: psycopg.Connection,
) -> None:
    body = a_report(create_order(shop, a_checkout()))
    shop.execute(
        "ALTER TABLE outboxd.outbox_events ADD CHECK (event_type <> 'process_payment') NOT VALID"
    )

    with pytest.raises(psycopg.errors.CheckViolation):
        webhook(shop, body)

    assert types_told(shop) == ["order.created"]
    assert number_of(shop, "payments") == 0
