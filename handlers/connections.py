"""Connections to the shop's database for handlers that bring their own."""

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

MOST_CONNECTIONS = 4
"""Per handler and process: they are held for a statement or two, never during a call elsewhere."""

WAIT_SECONDS = 5.0
"""For a connection."""

STORE_SECONDS = 8.0
"""What a handler keeps of its time while it calls somebody: to get a connection and store what came
of the call. A thread that is over its time takes its whole process down."""

LOCK_LIMIT = "SET LOCAL lock_timeout = '2s'"
"""First in a transaction that waits for locks, so that it ends within `STORE_SECONDS`."""

ShopPool = ConnectionPool[psycopg.Connection[TupleRow]]


def shop_pool(database_url: str, name: str) -> ShopPool:
    """A pool whose connections commit each statement outside of a transaction.

    It connects when first used: a handler is constructed also while the database is away.
    """
    return ConnectionPool(
        database_url,
        connection_class=psycopg.Connection[TupleRow],
        kwargs={"autocommit": True, "fallback_application_name": name},
        min_size=0,
        max_size=MOST_CONNECTIONS,
        timeout=WAIT_SECONDS,
        # Without it the first calls after a restart of the database fail on dead connections.
        check=ConnectionPool.check_connection,
        name=name,
        open=True,
    )
