"""Lanes to the database: so many connections are for checkouts, so many for webhooks, and whoever
holds up the one does not hold up the other.

A work has a thread and a connection while it lasts, and both are scarce: without lanes one price
that somebody changes and does not commit takes all of them, and no payment is heard any more.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeAlias, TypeVar

import psycopg
from anyio import CapacityLimiter, Semaphore, fail_after, to_thread
from psycopg_pool import ConnectionPool

Pool: TypeAlias = ConnectionPool[psycopg.Connection[Any]]
T = TypeVar("T")

TURN_SECONDS = 3.0
"""How long a request waits for its turn, which is a thread and a connection."""

CONNECTION_SECONDS = 3.0
"""How long it then waits for the connection, which is there unless the database is away."""

LOCK_SECONDS = 2
STATEMENT_SECONDS = 5
"""How long the database lets a statement wait for others, and how long it lets it run at all."""

# SET LOCAL and not the start option `options`: PgBouncer refuses that. Both in one message.
LIMITS = (
    f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'; "
    f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'"
).encode()

KEEPALIVE = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""A database whose machine is gone says nothing: without these it is waited for a quarter of an
hour. In seconds, the last in milliseconds."""


class Crowded(Exception):
    """Too many others wait for the same thing: come again later."""


class Shares(NamedTuple):
    """How many connections of a pool are for whom."""

    checkouts: int
    webhooks: int
    health: int


def shares(connections: int) -> Shares:
    """Everybody's share of a pool, at least one; with fewer than three they have to share."""
    webhooks = max(1, (connections - 1) // 2)
    return Shares(max(1, connections - 1 - webhooks), webhooks, health=1)


def own_pool(dsn: str, most_connections: int) -> Pool:
    """A pool that is still to be opened, whose connections commit each statement outside of a
    transaction."""
    return ConnectionPool(
        dsn,
        connection_class=psycopg.Connection[Any],
        kwargs={"autocommit": True, "fallback_application_name": "shop", **KEEPALIVE},
        min_size=1,
        max_size=most_connections,
        timeout=CONNECTION_SECONDS,
        check=ConnectionPool.check_connection,
        open=False,
    )


class Lane:
    """At most `width` works at once, each in a thread with a connection of the pool."""

    def __init__(self, pool: Pool, width: int) -> None:
        self._pool = pool
        self._turns = Semaphore(width)
        # Its own, for those that a server shares among all requests may be taken by others.
        self._threads = CapacityLimiter(width)

    async def run(self, work: Callable[[psycopg.Connection], T]) -> T:
        """What `work` returns, in one transaction that is bounded in time and committed by then.

        Raises `Crowded`, what psycopg raises, and what `work` raises.
        """
        async with self._turn():
            return await to_thread.run_sync(self._transaction, work, limiter=self._threads)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        # Waited for here and not in a thread: those who wait take nothing.
        try:
            with fail_after(TURN_SECONDS):
                await self._turns.acquire()
        except TimeoutError as error:
            raise Crowded(f"no turn within {TURN_SECONDS:g} s") from error
        try:
            yield
        finally:
            self._turns.release()

    def _transaction(self, work: Callable[[psycopg.Connection], T]) -> T:
        with self._pool.connection() as connection:
            try:
                with connection.transaction():
                    connection.execute(LIMITS)
                    return work(connection)
            except psycopg.errors.ReadOnlySqlTransaction:
                # To a server that is a standby by now: the pool's next one may find the primary.
                connection.close()
                raise
