"""Purchases at a steady rate, made by a few customers at a time."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
from psycopg_pool import ConnectionPool

from outboxd.demo.shopper import Purchase

logger = logging.getLogger(__name__)

CUSTOMERS = 4
"""Threads, which share a pool of connections as the requests of a web service do."""

CONNECTION_SECONDS = 5.0
"""How long a customer waits for a connection, and the pool for the database, before either asks
anew: the pool's own pauses between attempts grow to half a minute."""

RECONNECT_SECONDS = 0.05


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
    """Makes one purchase after the other; a lost connection makes it try the same one again."""

    def __init__(self, pool: ConnectionPool, schedule: Schedule) -> None:
        super().__init__(name="customer")
        self._pool = pool
        self._schedule = schedule
        self.failure: Exception | None = None
        """What ended this customer early; a thread cannot raise it to anybody."""

    def run(self) -> None:
        purchase = self._schedule.next()
        while purchase is not None and not self._schedule.stopping.is_set():
            try:
                with self._pool.connection() as connection:
                    purchase.make(connection)
            except psycopg.OperationalError as error:
                logger.warning("the shop's database is away", extra={"error": str(error)})
                # Its other connections died with this one, most likely. The pool's own check of a
                # connection that is asked for pauses for a second after each dead one.
                self._pool.check()
                self._schedule.stopping.wait(RECONNECT_SECONDS)
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
def shopping(dsn: str, *, orders: int | None, rate: float, seed: int) -> Iterator[Shop]:
    """Make `orders` purchases (None: without end), `rate` a second, while the block lasts."""
    with _pool(dsn) as pool:
        schedule = Schedule(orders=orders, rate=rate, seed=seed)
        customers = [Customer(pool, schedule) for _ in range(CUSTOMERS)]
        for customer in customers:
            customer.start()
        try:
            yield Shop(schedule, customers)
        finally:
            schedule.stopping.set()
            for customer in customers:
                customer.join()


def _pool(dsn: str) -> ConnectionPool:
    return ConnectionPool(
        dsn,
        kwargs={"autocommit": True},
        min_size=CUSTOMERS,
        timeout=CONNECTION_SECONDS,
        reconnect_timeout=CONNECTION_SECONDS,
    )
