"""One purchase: an order and its payment, the same for the same seed and number every time."""

import random
from datetime import UTC, datetime
from uuid import UUID

import psycopg

from handlers.orders import Checkout, Line, create_order
from handlers.payments import GatewayPayment, record_payment

REPEATED_EVERY = 10
"""One purchase in ten is sent twice throughout, as impatient browsers and careful gateways do."""

CATALOGUE = (
    ("cleanser-150", 890),
    ("serum-30", 2450),
    ("moisturizer-50", 1890),
    ("sunscreen-50", 1590),
    ("lip-balm", 450),
)
"""Article and price, in the minor unit."""

CURRENCY = "SGD"


class Purchase:
    """Number `number` of a run; making it again, for whatever reason, changes nothing."""

    def __init__(self, seed: int, number: int) -> None:
        dice = random.Random(f"{seed}/{number}")
        lines = tuple(
            Line(sku, dice.randint(1, 3), price)
            for sku, price in dice.sample(CATALOGUE, k=dice.randint(1, 3))
        )
        self.key = f"demo-{seed}-{number}"
        self.requests = 2 if number % REPEATED_EVERY == 0 else 1
        self.checkout = Checkout(
            customer_id=UUID(int=dice.getrandbits(128), version=4),
            currency=CURRENCY,
            lines=lines,
            idempotency_key=self.key,
        )

    def make(self, connection: psycopg.Connection) -> None:
        """Order as the customer does, then report the payment as the gateway does."""
        self._pay(connection, self._order(connection))

    def _order(self, connection: psycopg.Connection) -> UUID:
        order_ids = {create_order(connection, self.checkout) for _ in range(self.requests)}
        (order_id,) = order_ids
        return order_id

    def _pay(self, connection: psycopg.Connection, order_id: UUID) -> None:
        payment = GatewayPayment(
            order_id=order_id,
            transaction_id=self.key,
            amount=self.checkout.total,
            currency=CURRENCY,
            paid_at=datetime.now(UTC),
        )
        for _ in range(self.requests):
            record_payment(connection, payment)
