"""The shop over HTTP: where the checkout and the gateway's webhook belong in a web application.

    uvicorn --factory my_shop:app    # def app(): return create_app(dsn, webhook_secret=secret)

Both functions are synchronous and take a connection, so any framework does; here they run in
threads, each in a lane of its own. Who the customer is, and how often they may ask, is for what
stands before it: docs/shop.md.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, assert_never
from uuid import UUID

import msgspec
import psycopg
from msgspec import Meta, Struct
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from handlers.events import Currency
from handlers.lanes import Lane, Pool, own_pool, shares
from handlers.orders import Checkout, Line, create_order
from handlers.payments import Receipt, store_report
from handlers.problems import EXCEPTION_HANDLERS, Unacceptable
from handlers.webhooks import GatewayReport, OtherReport, read_webhook

MOST_BODY_BYTES = 64 * 1024
"""A checkout of 100 lines has 10 KiB; what is larger is not even read to its end."""

MOST_CONNECTIONS = 10

IDEMPOTENCY_KEY = "Idempotency-Key"

ASK_READ_ONLY = "SELECT current_setting('transaction_read_only')::boolean"


def _now() -> datetime:
    return datetime.now(UTC)


class CheckoutRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a checkout. Unlike an event it has no field that we do not know, nor has a line:
    whoever sends a coupon expects it to count."""

    customer_id: UUID
    currency: Currency
    lines: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=100)]


def create_app(
    database: str | Pool, *, webhook_secret: str, now: Callable[[], datetime] = _now
) -> Starlette:
    """The application. `database` is a DSN, for a pool of the application's own, or the pool of
    somebody who also opens and closes it; of at least three connections, one for each lane."""
    if not webhook_secret:
        raise ValueError("webhook_secret is empty: everybody could report payments")
    pool = own_pool(database, MOST_CONNECTIONS) if isinstance(database, str) else database
    shop = _Shop(pool, webhook_secret, now)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if pool is database:
            yield
            return
        await run_in_threadpool(pool.open)
        try:
            yield
        finally:
            await run_in_threadpool(pool.close)

    routes = [
        Route("/v1/checkout", shop.checkout, methods=["POST"]),
        Route("/v1/webhooks/payment", shop.payment, methods=["POST"]),
        Route("/healthz", shop.health, methods=["GET"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=EXCEPTION_HANDLERS)


class _Shop:
    """The endpoints: each reads a bounded body, refuses what can be refused without a database, and
    leaves the rest to a function that is given a connection."""

    def __init__(self, pool: Pool, webhook_secret: str, now: Callable[[], datetime]) -> None:
        share = shares(pool.max_size)
        self._checkouts = Lane(pool, share.checkouts)
        self._webhooks = Lane(pool, share.webhooks)
        self._health = Lane(pool, share.health)
        self._webhook_secret = webhook_secret
        self._now = now

    async def checkout(self, request: Request) -> Response:
        checkout = _checkout_of(request.headers.get(IDEMPOTENCY_KEY), await _body(request))
        order_id = await self._checkouts.run(lambda connection: create_order(connection, checkout))
        # The same answer to a repeated request: whoever lost the first one cannot tell.
        return _json({"order_id": order_id, "total": checkout.total}, HTTPStatus.CREATED)

    async def payment(self, request: Request) -> Response:
        body = await _body(request)
        report = read_webhook(request.headers, body, secret=self._webhook_secret, now=self._now())
        receipt = await self._receipt(report)
        return _json({"receipt": receipt.value})

    async def _receipt(self, report: GatewayReport | OtherReport) -> Receipt:
        match report:
            case OtherReport():
                return Receipt.IGNORED
            case GatewayReport():
                return await self._webhooks.run(lambda connection: store_report(connection, report))
            case _:
                assert_never(report)

    async def health(self, _: Request) -> Response:
        await self._health.run(_check_writable)
        return PlainTextResponse("ok\n")


def _check_writable(connection: psycopg.Connection) -> None:
    """Raises `ReadOnlySqlTransaction`, as a checkout would."""
    ((read_only,),) = connection.execute(ASK_READ_ONLY).fetchall()
    if read_only:
        raise psycopg.errors.ReadOnlySqlTransaction("the database is read-only, or a standby")


def _checkout_of(key: str | None, body: bytes) -> Checkout:
    """Raises `Unacceptable`."""
    if key is None:
        raise Unacceptable(
            HTTPStatus.BAD_REQUEST,
            "key-missing",
            f"send {IDEMPOTENCY_KEY} with a value of your own, the same when you send this again",
        )
    try:
        asked = msgspec.json.decode(body, type=CheckoutRequest)
        # Converted and not constructed: only what is decoded is held against its type.
        return msgspec.convert({**msgspec.structs.asdict(asked), "idempotency_key": key}, Checkout)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unacceptable(
            HTTPStatus.UNPROCESSABLE_ENTITY, "checkout-malformed", str(error)
        ) from error


async def _body(request: Request) -> bytes:
    """The whole body. Raises `Unacceptable` as soon as it is too long."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise Unacceptable(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "body-too-large",
                f"at most {MOST_BODY_BYTES} bytes are read",
            )
    return bytes(body)


def _json(content: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")
