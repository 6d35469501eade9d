"""One purchase: an order and its payment, the same for the same seed and number every time."""

import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import msgspec

from handlers.orders import Checkout, Line
from handlers.webhooks import GatewayReport, sign
from outboxd.demo.errors import DemoError

REPEATED_EVERY = 10
"""One purchase in ten is sent again throughout, as impatient browsers and careful gateways do."""

CHECKOUTS = 2
WEBHOOKS = 5
"""How often its checkout is sent, one after the other, and its webhook, all at once."""

CATALOGUE = (
    ("cleanser-150", 890),
    ("serum-30", 2450),
    ("moisturizer-50", 1890),
    ("sunscreen-50", 1590),
    ("lip-balm", 450),
)
"""Article and price, in the minor unit, as the migration of the shop's tables has them."""

CURRENCY = "SGD"


class ShopAway(Exception):
    """The shop does not answer, or says that it cannot: try again."""


class Purchase:
    """Number `number` of a run; making it again, for whatever reason, changes nothing."""

    def __init__(self, seed: int, number: int) -> None:
        dice = random.Random(f"{seed}/{number}")
        lines = tuple(
            Line(sku, dice.randint(1, 3), price)
            for sku, price in dice.sample(CATALOGUE, k=dice.randint(1, 3))
        )
        self.key = f"demo-{seed}-{number}"
        self.repeated = number % REPEATED_EVERY == 0
        self.checkout = Checkout(
            customer_id=UUID(int=dice.getrandbits(128), version=4),
            currency=CURRENCY,
            lines=lines,
            idempotency_key=self.key,
        )
        self._report = b""

    def make(self, client: httpx.Client, webhook_secret: str) -> None:
        """Order as the customer does, then report the payment as the gateway does.

        Raises ShopAway; and DemoError if the shop refuses, which it has no reason to.
        """
        order_id = self._order(client)
        # Written once: the gateway says the same each time, and one that does not is refused.
        self._report = self._report or self._report_of(order_id)
        if not self.repeated:
            self._pay(client, webhook_secret)
            return
        with ThreadPoolExecutor(WEBHOOKS) as gateway:
            for paid in [
                gateway.submit(self._pay, client, webhook_secret) for _ in range(WEBHOOKS)
            ]:
                paid.result()

    def _order(self, client: httpx.Client) -> UUID:
        checkout = msgspec.to_builtins(self.checkout)
        key = checkout.pop("idempotency_key")
        body = msgspec.json.encode(checkout)
        order_ids = {
            _post(client, "/v1/checkout", body, {"Idempotency-Key": key})["order_id"]
            for _ in range(CHECKOUTS if self.repeated else 1)
        }
        (order_id,) = order_ids
        return UUID(order_id)

    def _pay(self, client: httpx.Client, webhook_secret: str) -> None:
        signature = sign(webhook_secret, self._report, datetime.now(UTC))
        _post(client, "/v1/webhooks/payment", self._report, signature)

    def _report_of(self, order_id: UUID) -> bytes:
        report = GatewayReport(
            type="payment.succeeded",
            event_id=f"report-{self.key}",
            order_id=order_id,
            transaction_id=self.key,
            amount=self.checkout.total,
            currency=CURRENCY,
            paid_at=datetime.now(UTC),
        )
        return msgspec.json.encode(report)


def _post(client: httpx.Client, path: str, body: bytes, headers: Mapping[str, str]) -> Any:
    """The answer to a request that the shop has no reason to refuse."""
    try:
        response = client.post(path, content=body, headers=headers)
    except httpx.TransportError as error:
        raise ShopAway(f"POST {path}: {error}") from error
    if response.is_server_error:
        raise ShopAway(f"POST {path}: {response.status_code} {response.text[:300]}")
    if not response.is_success:
        raise DemoError(f"the shop refuses POST {path}: {response.status_code} {response.text}")
    return msgspec.json.decode(response.content)
