"""The shop over HTTP: a real server, a real client, and a database that may be away."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg_pool import ConnectionPool
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.api import MOST_BODY_BYTES, create_app
from handlers.lanes import CONNECTION_SECONDS, LOCK_SECONDS, STATEMENT_SECONDS, TURN_SECONDS
from handlers.orders import create_order
from handlers.webhooks import sign
from tests.shop.customers import (
    COSTS,
    SECRET,
    a_checkout,
    a_report,
    number_of,
    types_told,
    until_somebody_waits_for_a_lock,
)
from tests.shop.serving import served

NOWHERE = "postgresql://127.0.0.1:1/shop"
"""Nothing listens on port 1."""

LONGEST_SECONDS = TURN_SECONDS + CONNECTION_SECONDS + LOCK_SECONDS + STATEMENT_SECONDS
"""What a request may take that waits everywhere."""

LIP_BALM = {"sku": "lip-balm", "quantity": 1, "unit_price": 450}

CHECKOUT: dict[str, Any] = {
    "customer_id": "8d7bb1a6-2c0e-4b4f-9f3a-1f0f0c9f5a11",
    "currency": "SGD",
    "lines": [
        {"sku": "serum-30", "quantity": 2, "unit_price": 2450},
        {"sku": "lip-balm", "quantity": 1, "unit_price": 450},
    ],
}


@pytest.fixture
def client(shop_database: str) -> Iterator[httpx.Client]:
    with served(create_app(shop_database, webhook_secret=SECRET)) as client:
        yield client


def check_out(client: httpx.Client, key: str = "key-1", **changes: Any) -> httpx.Response:
    headers = {"Idempotency-Key": key}
    return client.post("/v1/checkout", json={**CHECKOUT, **changes}, headers=headers)


def report(
    client: httpx.Client, body: bytes, secret: str = SECRET, age: timedelta = timedelta()
) -> httpx.Response:
    headers = sign(secret, body, datetime.now(UTC) - age)
    return client.post("/v1/webhooks/payment", content=body, headers=headers)


def comes_again(response: httpx.Response, kind: str) -> bool:
    """Whether somebody is asked to send the same again, soon."""
    assert problem_of(response) == (503, f"/problems/{kind}")
    return response.headers["retry-after"] == "5"


def problem_of(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == response.status_code
    return response.status_code, problem["type"]


def test_an_order_is_made_and_paid(client: httpx.Client, shop: psycopg.Connection) -> None:
    made = check_out(client)
    assert (made.status_code, made.json()["total"]) == (201, COSTS)
    order_id = UUID(made.json()["order_id"])

    paid = report(client, a_report(order_id))

    assert (paid.status_code, paid.json()) == (200, {"receipt": "new"})
    assert types_told(shop) == ["order.created", "payment.succeeded", "process_payment"]
    assert shop.execute("SELECT id, customer_id FROM shop.orders").fetchall() == [
        (order_id, UUID(CHECKOUT["customer_id"]))
    ]


def test_a_repeated_checkout_gets_the_same_answer(
    client: httpx.Client, shop: psycopg.Connection
) -> None:
    first, second = check_out(client), check_out(client)

    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert types_told(shop) == ["order.created"]


def test_a_webhook_that_is_sent_five_times_at_once_is_five_successes(
    client: httpx.Client, shop: psycopg.Connection
) -> None:
    body = a_report(create_order(shop, a_checkout()))

    with ThreadPoolExecutor(5) as gateways:
        answers = list(gateways.map(lambda _: report(client, body), range(5)))

    assert [answer.status_code for answer in answers] == [200] * 5
    receipts = sorted(answer.json()["receipt"] for answer in answers)
    assert receipts == ["duplicate"] * 4 + ["new"]
    assert types_told(shop) == ["order.created", "payment.succeeded", "process_payment"]
    assert number_of(shop, "payments") == 1


def forged(client: httpx.Client, order_id: UUID) -> httpx.Response:
    return report(client, a_report(order_id), secret="another secret")


def unsigned(client: httpx.Client, order_id: UUID) -> httpx.Response:
    return client.post("/v1/webhooks/payment", content=a_report(order_id))


def changed_on_the_way(client: httpx.Client, order_id: UUID) -> httpx.Response:
    headers = sign(SECRET, a_report(order_id), datetime.now(UTC))
    body = a_report(order_id, amount=1)
    return client.post("/v1/webhooks/payment", content=body, headers=headers)


def expired(client: httpx.Client, order_id: UUID) -> httpx.Response:
    return report(client, a_report(order_id), age=timedelta(minutes=6))


def malformed(client: httpx.Client, order_id: UUID) -> httpx.Response:
    return report(client, b"not json")


def too_large(client: httpx.Client, order_id: UUID) -> httpx.Response:
    return report(client, a_report(order_id, note="x" * MOST_BODY_BYTES))


def of_nobodys_order(client: httpx.Client, order_id: UUID) -> httpx.Response:
    return report(client, a_report(uuid4()))


@pytest.mark.parametrize(
    ("send", "answer"),
    [
        (forged, (403, "/problems/signature-invalid")),
        (unsigned, (403, "/problems/signature-invalid")),
        (changed_on_the_way, (403, "/problems/signature-invalid")),
        (expired, (400, "/problems/webhook-expired")),
        (malformed, (400, "/problems/webhook-malformed")),
        (too_large, (413, "/problems/body-too-large")),
        (of_nobodys_order, (404, "/problems/unknown-order")),
    ],
)
def test_a_webhook_that_is_refused_leaves_nothing(
    client: httpx.Client,
    shop: psycopg.Connection,
    send: Callable[[httpx.Client, UUID], httpx.Response],
    answer: tuple[int, str],
) -> None:
    order_id = create_order(shop, a_checkout())

    assert problem_of(send(client, order_id)) == answer

    assert number_of(shop, "payments") == 0
    assert types_told(shop) == ["order.created"]


@pytest.mark.parametrize("kind", ["payment.failed", "refund.succeeded"])
def test_a_report_of_something_else_is_a_success_that_stores_nothing(
    client: httpx.Client, shop: psycopg.Connection, kind: str
) -> None:
    order_id = create_order(shop, a_checkout())

    answer = report(client, a_report(order_id, type=kind))

    assert (answer.status_code, answer.json()) == (200, {"receipt": "ignored"})
    assert number_of(shop, "payments") == 0
    assert types_told(shop) == ["order.created"]


def test_a_replayed_webhook_is_refused(client: httpx.Client, shop: psycopg.Connection) -> None:
    order_id = create_order(shop, a_checkout())
    report(client, a_report(order_id))

    again = report(client, a_report(order_id, transaction_id="tx-2"))

    assert problem_of(again) == (409, "/problems/webhook-replayed")
    assert number_of(shop, "payments") == 1


def test_a_body_without_an_announced_length_is_bounded_as_well(client: httpx.Client) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(MOST_BODY_BYTES // 1024 + 1):
            yield b" " * 1024

    answer = client.post("/v1/webhooks/payment", content=endless())

    assert problem_of(answer) == (413, "/problems/body-too-large")


@pytest.mark.parametrize(
    "changes",
    [
        {"lines": []},
        {"lines": [{"sku": "lip-balm", "quantity": 0, "unit_price": 450}]},
        {"lines": [{"sku": "lip-balm", "quantity": 101, "unit_price": 450}]},
        {"lines": [{"sku": "lip-balm", "quantity": -1, "unit_price": 450}]},
        {"lines": [{"sku": "lip-balm", "quantity": 1, "unit_price": -450}]},
        {"lines": [{"sku": "lip\0balm", "quantity": 1, "unit_price": 450}]},
        {"lines": [{"sku": "lip-balm", "quantity": 1, "unit_price": 450}] * 101},
        {"lines": [{**LIP_BALM, "coupon": "X"}]},
        {"currency": "sgd"},
        {"customer_id": "me"},
        {"coupon": "X"},
    ],
)
def test_a_checkout_that_makes_no_sense_is_refused(
    client: httpx.Client, shop: psycopg.Connection, changes: dict[str, Any]
) -> None:
    assert problem_of(check_out(client, **changes)) == (422, "/problems/checkout-malformed")
    assert number_of(shop, "orders") == 0


def test_a_checkout_of_endless_depth_is_refused(client: httpx.Client) -> None:
    deep = '{"lines": ' + "[" * 30_000 + "]" * 30_000 + "}"

    answer = client.post("/v1/checkout", content=deep, headers={"Idempotency-Key": "key-1"})

    assert problem_of(answer) == (422, "/problems/checkout-malformed")


@pytest.mark.parametrize("key", ["", "two words", "x" * 256])
def test_a_key_that_makes_no_sense_is_refused(client: httpx.Client, key: str) -> None:
    assert problem_of(check_out(client, key)) == (422, "/problems/checkout-malformed")


def test_a_checkout_without_a_key_is_told_what_it_lacks(client: httpx.Client) -> None:
    answer = client.post("/v1/checkout", json=CHECKOUT)

    assert problem_of(answer) == (400, "/problems/key-missing")
    assert "Idempotency-Key" in answer.json()["detail"]


def test_a_key_that_belongs_to_another_checkout_is_refused(client: httpx.Client) -> None:
    check_out(client)

    answer = check_out(client, lines=[LIP_BALM])

    assert problem_of(answer) == (422, "/problems/key-reused")


def test_a_key_that_somebody_else_has_used_is_free(
    client: httpx.Client, shop: psycopg.Connection
) -> None:
    alice = check_out(client)

    mallory = check_out(client, customer_id=str(uuid4()), lines=[LIP_BALM])

    assert (alice.status_code, mallory.status_code) == (201, 201)
    assert mallory.json()["order_id"] != alice.json()["order_id"]
    assert check_out(client).content == alice.content
    assert number_of(shop, "orders") == 2


@pytest.mark.parametrize(
    "quantities", [[100] * 100, [100, 1], [51, 50]], ids=["the most", "100 + 1", "51 + 50"]
)
def test_nobody_takes_all_of_an_article(
    client: httpx.Client, shop: psycopg.Connection, quantities: list[int]
) -> None:
    lines = [{**LIP_BALM, "quantity": quantity} for quantity in quantities]

    answer = check_out(client, lines=[*CHECKOUT["lines"][:1], *lines][-100:])

    assert problem_of(answer) == (422, "/problems/too-many-pieces")
    assert answer.json()["detail"] == "at most 100 in an order: lip-balm"
    assert number_of(shop, "orders") == 0
    assert types_told(shop) == []


def test_as_many_as_are_allowed_are_sold_on_however_many_lines(client: httpx.Client) -> None:
    lines = [{**LIP_BALM, "quantity": 50}] * 2 + [{**CHECKOUT["lines"][0], "quantity": 100}]

    assert check_out(client, lines=lines).status_code == 201


def test_an_order_that_nobody_could_pay_is_refused(
    client: httpx.Client, shop: psycopg.Connection
) -> None:
    shop.execute("INSERT INTO shop.products VALUES ('gift', 'Gift', 'SGD', 0)")
    gift = {"sku": "gift", "quantity": 1, "unit_price": 0}

    assert problem_of(check_out(client, lines=[gift])) == (422, "/problems/nothing-to-pay")
    assert types_told(shop) == []
    assert check_out(client, lines=[gift, LIP_BALM]).json()["total"] == 450


def test_a_customer_is_shown_the_new_prices(client: httpx.Client, shop: psycopg.Connection) -> None:
    shop.execute("UPDATE shop.products SET price_minor = 500 WHERE sku = 'lip-balm'")

    answer = check_out(client)

    assert problem_of(answer) == (409, "/problems/price-changed")
    assert answer.json()["prices"] == [{"sku": "lip-balm", "seen": 450, "current": 500}]
    assert types_told(shop) == []


def test_an_article_that_is_not_for_sale_is_named(client: httpx.Client) -> None:
    answer = check_out(client, lines=[{"sku": "soap", "quantity": 1, "unit_price": 450}])

    assert problem_of(answer) == (422, "/problems/unknown-product")
    assert "soap" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/v1/checkout", 405), ("PUT", "/v1/webhooks/payment", 405)],
)
def test_what_is_not_there_is_a_problem_as_well(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    assert problem_of(client.request(method, path)) == (status, "about:blank")


def test_the_shop_is_healthy(client: httpx.Client) -> None:
    answer = client.get("/healthz")

    assert (answer.status_code, answer.text) == (200, "ok\n")


@pytest.fixture
def stranded() -> Iterator[httpx.Client]:
    """A client of a shop without a database, which does not wait long for one."""
    pool: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
        NOWHERE,
        connection_class=psycopg.Connection[Any],
        min_size=0,
        max_size=4,
        timeout=0.2,
        reconnect_timeout=0.1,
        open=True,
    )
    with pool, served(create_app(pool, webhook_secret=SECRET)) as client:
        yield client


def test_while_the_database_is_away_everybody_is_asked_to_come_again(
    stranded: httpx.Client,
) -> None:
    answers = [check_out(stranded), report(stranded, a_report(uuid4()))]

    answers.append(stranded.get("/healthz"))
    for answer in answers:
        assert comes_again(answer, "database-away")
        assert "127.0.0.1" not in answer.text


@pytest.mark.parametrize(
    ("send", "status"),
    [(forged, 403), (unsigned, 403), (changed_on_the_way, 403), (expired, 400), (malformed, 400)],
)
def test_a_webhook_that_is_not_believed_needs_no_database(
    stranded: httpx.Client, send: Callable[[httpx.Client, UUID], httpx.Response], status: int
) -> None:
    assert send(stranded, uuid4()).status_code == status


def test_a_report_of_something_else_needs_no_database(stranded: httpx.Client) -> None:
    answer = report(stranded, a_report(uuid4(), type="payment.failed"))

    assert answer.json() == {"receipt": "ignored"}


def test_a_price_that_is_held_stops_checkouts_for_seconds_and_no_webhook(
    client: httpx.Client, shop: psycopg.Connection, shop_database: str
) -> None:
    """With more checkouts than a server has threads for."""
    body = a_report(create_order(shop, a_checkout()))

    with psycopg.connect(shop_database) as merchant, ThreadPoolExecutor(60) as browsers:
        merchant.execute("UPDATE shop.products SET price_minor = 500 WHERE sku = 'lip-balm'")
        waiting = [browsers.submit(check_out, client, f"key-{n}") for n in range(60)]
        until_somebody_waits_for_a_lock(shop_database)
        paid, health = report(client, body), client.get("/healthz")
        answers = [checkout.result() for checkout in waiting]
        merchant.rollback()

    assert (paid.status_code, paid.json()) == (200, {"receipt": "new"})
    assert health.status_code == 200
    for answer in answers:
        assert comes_again(answer, "busy")
        assert answer.elapsed.total_seconds() < LONGEST_SECONDS
    assert check_out(client).status_code == 201
    assert types_told(shop).count("order.created") == 2


def test_payments_that_are_held_stop_webhooks_for_seconds_and_no_checkout(
    client: httpx.Client, shop: psycopg.Connection, shop_database: str
) -> None:
    body = a_report(create_order(shop, a_checkout()))

    with psycopg.connect(shop_database) as operator, ThreadPoolExecutor(20) as gateways:
        operator.execute("LOCK TABLE shop.payments IN EXCLUSIVE MODE")
        waiting = [gateways.submit(report, client, body) for _ in range(20)]
        until_somebody_waits_for_a_lock(shop_database)
        made = check_out(client)
        answers = [payment.result() for payment in waiting]
        operator.rollback()

    assert made.status_code == 201
    for answer in answers:
        assert comes_again(answer, "busy")
        assert answer.elapsed.total_seconds() < LONGEST_SECONDS
    assert report(client, body).json() == {"receipt": "new"}


def test_while_the_database_is_read_only_everybody_is_asked_to_come_again(
    shop: psycopg.Connection, shop_database: str
) -> None:
    order_id = create_order(shop, a_checkout())
    standby = make_conninfo(shop_database, options="-c default_transaction_read_only=on")

    with served(create_app(standby, webhook_secret=SECRET)) as client:
        answers = [check_out(client), report(client, a_report(order_id)), client.get("/healthz")]

    for answer in answers:
        assert comes_again(answer, "database-away")


def test_after_a_failover_the_shop_finds_the_new_primary(
    client: httpx.Client, shop: psycopg.Connection
) -> None:
    """Sessions keep what the database was like when they began, as they keep their server."""
    database = sql.Identifier(shop.info.dbname)
    stand_by = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(database)
    promote = sql.SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(database)
    shop.execute(stand_by)
    shop.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    assert comes_again(check_out(client), "database-away")
    shop.execute(promote)

    while (answer := check_out(client)).status_code != 201:
        assert comes_again(answer, "database-away")


class Watched:
    """An application, and what it has raised."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.answered = threading.Event()
        self.raised: list[Exception] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            self.raised.append(error)
            raise
        finally:
            if scope["type"] == "http":
                self.answered.set()


def test_a_customer_who_hangs_up_is_no_mistake_of_ours(shop_database: str) -> None:
    watched = Watched(create_app(shop_database, webhook_secret=SECRET))

    with served(watched) as client:
        address = (client.base_url.host, client.base_url.port or 80)
        with socket.create_connection(address) as customer:
            customer.sendall(
                b"POST /v1/checkout HTTP/1.1\r\nHost: shop\r\nContent-Length: 1000\r\n\r\n{"
            )
        assert watched.answered.wait(30)

    assert watched.raised == []


def test_a_mistake_of_ours_is_answered_without_its_text(
    client: httpx.Client, shop: psycopg.Connection
) -> None:
    shop.execute("DROP TABLE shop.products")

    answer = check_out(client)

    assert problem_of(answer) == (500, "about:blank")
    assert "products" not in answer.text


def test_a_pool_that_is_given_stays_open(shop_database: str) -> None:
    with ConnectionPool(
        shop_database, connection_class=psycopg.Connection[Any], min_size=1, open=True
    ) as pool:
        with served(create_app(pool, webhook_secret=SECRET)) as client:
            assert check_out(client).status_code == 201
        with pool.connection() as connection:
            assert types_told(connection) == ["order.created"]


def test_a_shop_without_a_secret_does_not_open() -> None:
    with pytest.raises(ValueError, match="webhook_secret is empty"):
        create_app(NOWHERE, webhook_secret="")
