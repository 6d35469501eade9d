"""What the gateway says, once it is known that the gateway says it, and recently.

The header `Gateway-Signature: t=<Unix seconds>,v1=<hex>[,v1=<hex>]` signs `<t>.<body>` by
HMAC-SHA256, as the large payment gateways do. While the secret is changed the gateway signs with
both, so one good signature is enough.
"""

import hashlib
import hmac
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from handlers.events import VISIBLE, Currency, Paid, TransactionId

logger = logging.getLogger(__name__)

SIGNATURE_HEADER = "Gateway-Signature"

WINDOW_SECONDS = 300.0
"""How old a webhook may be: what somebody has recorded cannot be sent again later than that."""

PAYMENT_SUCCEEDED = "payment.succeeded"
"""The one type of report that the shop has a use for."""

EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""No shop of today was paid before."""

FIELD = re.compile(r"(?P<name>t|v[0-9]{1,2})=(?P<value>[!-+\--~]{1,128})", re.ASCII)
SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)


class WebhookRefused(Exception):
    """A webhook that is not believed; nothing of it is stored."""


class SignatureInvalid(WebhookRefused):
    """It was not signed with our secret, or not at all: forged, or the secrets differ."""


class WebhookExpired(WebhookRefused):
    """It was signed too long ago, or in the future: sent again by somebody, or a clock is wrong."""


class WebhookMalformed(WebhookRefused):
    """The gateway has signed something that is no report of its: it would not change."""


class WebhookReplayed(WebhookRefused):
    """It uses the id or the transaction of another report, which was believed before."""


class GatewayPayment(Struct, frozen=True, kw_only=True):
    """A successful payment as the gateway reports it, as often as it likes."""

    order_id: UUID
    transaction_id: TransactionId
    amount: Paid
    currency: Currency
    paid_at: Annotated[datetime, Meta(tz=True)]


class GatewayReport(GatewayPayment, frozen=True, kw_only=True):
    """The body of a webhook; what else the gateway has in there is ignored.

    But not its `type`: a payment that failed has the same fields, and is no payment.
    """

    type: Literal["payment.succeeded"]
    event_id: Annotated[str, Meta(pattern=VISIBLE, max_length=255)]


class OtherReport(Struct, frozen=True):
    """What the gateway tells besides, of a payment that failed for one. It is an answer that is
    due, and not a refusal: gateways give up endpoints that refuse their reports."""

    type: Annotated[str, Meta(pattern=VISIBLE, max_length=255)]


class Signature(NamedTuple):
    """The header in parts; `time` as it was signed, to the digit."""

    time: str
    values: tuple[str, ...]


def read_webhook(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secret: str,
    now: datetime,
    window: float = WINDOW_SECONDS,
) -> GatewayReport | OtherReport:
    """What the gateway says, once it is known that the gateway says it: needs no database, so that
    whoever forges a webhook costs nobody a connection.

    Raises `SignatureInvalid`, `WebhookExpired` and `WebhookMalformed`.
    """
    verify(headers, body, secret=secret, now=now, window=window)
    report = read_report(body, latest=now + timedelta(seconds=window))
    if isinstance(report, OtherReport):
        logger.info("a report of the gateway is ignored", extra={"report_type": report.type})
    return report


def read_report(body: bytes, *, latest: datetime) -> GatewayReport | OtherReport:
    """What a verified body says; nobody has paid later than `latest`. Raises `WebhookMalformed`."""
    try:
        # By its type first: what the other reports have besides is not for us to judge.
        other = msgspec.json.decode(body, type=OtherReport)
        if other.type != PAYMENT_SUCCEEDED:
            return other
        report = msgspec.json.decode(body, type=GatewayReport)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WebhookMalformed(f"the body is no report of the gateway: {error}") from error
    if not EARLIEST <= report.paid_at <= latest:
        # Sales are counted by this day, and invoices are filed under it.
        raise WebhookMalformed(f"the payment was made at an impossible time, {report.paid_at}")
    return report


def sign(secret: str, body: bytes, now: datetime) -> dict[str, str]:
    """The header with which the gateway sends this body: for tests, and for one that is played."""
    time = str(int(now.timestamp()))
    return {SIGNATURE_HEADER: f"t={time},v1={_digest(secret, time, body)}"}


def verify(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secret: str,
    now: datetime,
    window: float = WINDOW_SECONDS,
) -> None:
    """Raises `SignatureInvalid` and `WebhookExpired`. `window` is in seconds, to both sides."""
    if not secret:
        # An HMAC under an empty key can be computed by everybody.
        raise ValueError("the webhook secret is empty: set it to the one that the gateway shows")
    signature = parse(_header(headers))
    expected = _digest(secret, signature.time, body).encode()
    # Every one of them, and each in constant time: how long it takes tells nothing.
    matches = [hmac.compare_digest(expected, value.encode()) for value in signature.values]
    if not any(matches):
        raise SignatureInvalid("no signature fits the body: is this the secret of this endpoint?")
    # After the signature, so that only the gateway learns what our clock says.
    age = now.timestamp() - int(signature.time)
    if abs(age) > window:
        raise WebhookExpired(
            f"the webhook was signed {age:.0f} s ago, and {window:.0f} s are allowed"
        )


def parse(header: str) -> Signature:
    """One time and the signatures of version 1; other versions are passed over. Raises
    `SignatureInvalid`."""
    fields = [FIELD.fullmatch(field.strip()) for field in header.split(",")]
    known = [(field["name"], field["value"]) for field in fields if field is not None]
    times = [value for name, value in known if name == "t"]
    values = tuple(value for name, value in known if name == "v1")
    if len(known) != len(fields) or len(times) != 1 or not values:
        raise SignatureInvalid(f"{SIGNATURE_HEADER} is not of the form t=<seconds>,v1=<hex>")
    if SECONDS.fullmatch(times[0]) is None:
        raise SignatureInvalid(f"the t of {SIGNATURE_HEADER} is no number of seconds")
    return Signature(times[0], values)


def _header(headers: Mapping[str, str]) -> str:
    """The one header of that name, in whatever case. Raises `SignatureInvalid`."""
    found = [value for name, value in headers.items() if name.lower() == SIGNATURE_HEADER.lower()]
    if len(found) != 1:
        raise SignatureInvalid(f"{len(found)} headers {SIGNATURE_HEADER} were sent, and one is due")
    return found[0]


def _digest(secret: str, time: str, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{time}.".encode() + body, hashlib.sha256).hexdigest()
