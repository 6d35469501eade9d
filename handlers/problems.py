"""What the shop's HTTP endpoints answer when they do not do what was asked (RFC 9457)."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
import psycopg
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from handlers.lanes import Crowded
from handlers.orders import KeyReused, NothingToPay, TooManyPieces, UnknownOrder
from handlers.prices import PriceChanged, UnknownProduct
from handlers.webhooks import (
    SignatureInvalid,
    WebhookExpired,
    WebhookMalformed,
    WebhookReplayed,
)

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 5
"""When the database is away: outages of it are over within seconds, or take long anyway."""

BUSY = (
    Crowded,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)
"""The database is there, and somebody else has for too long what this request needs."""

AWAY = (
    psycopg.OperationalError,
    # A server that has become a standby: an outage that is over when the new primary is found.
    psycopg.errors.ReadOnlySqlTransaction,
)

STATUSES: Mapping[type[Exception], tuple[HTTPStatus, str]] = {
    PriceChanged: (HTTPStatus.CONFLICT, "price-changed"),
    UnknownProduct: (HTTPStatus.UNPROCESSABLE_ENTITY, "unknown-product"),
    KeyReused: (HTTPStatus.UNPROCESSABLE_ENTITY, "key-reused"),
    TooManyPieces: (HTTPStatus.UNPROCESSABLE_ENTITY, "too-many-pieces"),
    NothingToPay: (HTTPStatus.UNPROCESSABLE_ENTITY, "nothing-to-pay"),
    # Not 401: that has to name a scheme by which the next request can do better.
    SignatureInvalid: (HTTPStatus.FORBIDDEN, "signature-invalid"),
    WebhookExpired: (HTTPStatus.BAD_REQUEST, "webhook-expired"),
    WebhookMalformed: (HTTPStatus.BAD_REQUEST, "webhook-malformed"),
    WebhookReplayed: (HTTPStatus.CONFLICT, "webhook-replayed"),
    # A gateway tells anything again that was not answered with success, so this one as well.
    UnknownOrder: (HTTPStatus.NOT_FOUND, "unknown-order"),
}
"""Status and type of each refusal; its text is the problem's detail."""


class Unacceptable(Exception):
    """The request itself is wrong, whatever the shop holds."""

    def __init__(self, status: HTTPStatus, kind: str, detail: str) -> None:
        self.status = status
        self.kind = kind
        super().__init__(detail)


def problem(
    status: int,
    kind: str | None = None,
    detail: str | None = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Response:
    """An answer of type application/problem+json; what is None is left out."""
    told = {
        "type": "about:blank" if kind is None else f"/problems/{kind}",
        "title": HTTPStatus(status).phrase if kind is None else kind.replace("-", " "),
        "status": int(status),
        "detail": detail,
        **more,
    }
    content = msgspec.json.encode(
        {name: value for name, value in told.items() if value is not None}
    )
    return Response(content, status, headers, "application/problem+json")


async def refused(_: Request, error: Exception) -> Response:
    status, kind = STATUSES[type(error)]
    more: dict[str, Any] = {}
    if isinstance(error, PriceChanged):
        more["prices"] = error.prices
    return problem(status, kind, str(error), **more)


async def unacceptable(_: Request, error: Exception) -> Response:
    assert isinstance(error, Unacceptable)
    return problem(error.status, error.kind, str(error))


async def not_found(_: Request, error: Exception) -> Response:
    """Unknown paths and methods, which Starlette finds."""
    assert isinstance(error, HTTPException)
    return problem(error.status_code, headers=error.headers)


async def busy(_: Request, error: Exception) -> Response:
    logger.warning("a request has waited too long for others", extra={"error": str(error)})
    return _come_again("busy")


async def database_away(_: Request, error: Exception) -> Response:
    # Its text names hosts and users: it is for the log, not for the customer.
    logger.warning("the shop's database is away", extra={"error": str(error)})
    return _come_again("database-away")


def _come_again(kind: str) -> Response:
    detail = "the shop cannot store anything at the moment: send the same request again"
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, kind, detail, headers)


async def gone(_: Request, error: Exception) -> Response:
    """Whoever hangs up in the middle of a request is no mistake of ours, and reads no answer."""
    return problem(HTTPStatus.BAD_REQUEST)


async def broken(_: Request, error: Exception) -> Response:
    """A mistake of ours: Starlette raises it on, so that the server's log has it."""
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR)


EXCEPTION_HANDLERS: dict[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    **dict.fromkeys(STATUSES, refused),
    Unacceptable: unacceptable,
    HTTPException: not_found,
    ClientDisconnect: gone,
    **dict.fromkeys(BUSY, busy),
    **dict.fromkeys(AWAY, database_away),
    Exception: broken,
}
