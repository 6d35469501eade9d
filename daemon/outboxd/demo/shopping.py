"""Purchases at a steady rate, made by a few customers at a time."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import httpx

from outboxd.demo.shopper import WEBHOOKS, Purchase, ShopAway
from outboxd.demo.storefront import Storefront

logger = logging.getLogger(__name__)

CUSTOMERS = 4
"""Threads; more would not wait for the shop but for each other."""

ANSWER_SECONDS = 10.0
"""More than the shop itself waits for its database."""

AGAIN_SECONDS = 0.05


class Schedule:
    """Hands out purchases, each at its time: number n is due n / rate seconds after the start."""

    def __init__(self, *, orders: int | None, rate: float, seed: int) -> None:
        """`orders` is None for a run without end."""
        self.stopping = threading.Event()
        self._orders = orders
        self._rate = rate
        self._seed = seed
        self._lock = threading.Lock()
        self._numbers = count()
        self._began_at = time.monotonic()
        self._made = 0

    @property
    def done(self) -> bool:
        """Whether every purchase has been committed."""
        return self._orders is not None and self._made >= self._orders

    def next(self) -> Purchase | None:
        """The next purchase when it is due; None when there is none, or when stopping."""
        with self._lock:
            number = next(self._numbers)
        if self._orders is not None and number >= self._orders:
            return None
        due_in = self._began_at + number / self._rate - time.monotonic()
        if self.stopping.wait(max(0.0, due_in)):
            return None
        return Purchase(self._seed, number)

    def made(self) -> None:
        """One more purchase is committed."""
        with self._lock:
            self._made += 1


class Customer(threading.Thread):
    """Makes one purchase after the other; while the shop is away it tries the same one again."""

    def __init__(self, client: httpx.Client, webhook_secret: str, schedule: Schedule) -> None:
        super().__init__(name="customer")
        self._client = client
        self._webhook_secret = webhook_secret
        self._schedule = schedule
        self.failure: Exception | None = None
        """What ended this customer early; a thread cannot raise it to anybody."""

    def run(self) -> None:
        purchase = self._schedule.next()
        while purchase is not None and not self._schedule.stopping.is_set():
            try:
                purchase.make(self._client, self._webhook_secret)
            except ShopAway as error:
                logger.warning("the shop is away", extra={"error": str(error)})
                self._schedule.stopping.wait(AGAIN_SECONDS)
                continue
            except Exception as error:
                self.failure = error
                return
            self._schedule.made()
            purchase = self._schedule.next()


class Shop:
    """The customers of a schedule that is under way."""

    def __init__(self, schedule: Schedule, customers: list[Customer]) -> None:
        self._schedule = schedule
        self._customers = customers

    @property
    def closed(self) -> bool:
        """Whether every purchase has been committed. Raises what ended a customer, if anything."""
        for customer in self._customers:
            if customer.failure is not None:
                raise customer.failure
        return self._schedule.done


@contextmanager
def shopping(
    storefront: Storefront, *, orders: int | None, rate: float, seed: int
) -> Iterator[Shop]:
    """Make `orders` purchases (None: without end), `rate` a second, while the block lasts."""
    with _client(storefront.address) as client:
        schedule = Schedule(orders=orders, rate=rate, seed=seed)
        customers = [
            Customer(client, storefront.webhook_secret, schedule) for _ in range(CUSTOMERS)
        ]
        for customer in customers:
            customer.start()
        try:
            yield Shop(schedule, customers)
        finally:
            schedule.stopping.set()
            for customer in customers:
                customer.join()


def _client(address: str) -> httpx.Client:
    return httpx.Client(
        base_url=address,
        timeout=ANSWER_SECONDS,
        limits=httpx.Limits(max_connections=CUSTOMERS * WEBHOOKS),
        trust_env=False,  # the shop is on this machine, whatever proxies there are
    )
