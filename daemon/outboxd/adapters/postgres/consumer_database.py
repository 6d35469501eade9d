"""What a consumer pool has of PostgreSQL: the inbox, and transactions for its handlers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from outboxd.adapters.postgres.batch_transactions import (
    AsyncBatchTransactions,
    BatchTransactions,
)
from outboxd.adapters.postgres.claims import Claims
from outboxd.adapters.postgres.inbox import PostgresInbox
from outboxd.adapters.postgres.pools import AsyncConnections, Connections, Database
from outboxd.adapters.postgres.suspects import PostgresSuspects
from outboxd.adapters.postgres.transactions import AsyncTransactions, Transactions
from outboxd.core.settings import DatabaseSettings


class ConsumerDatabase(msgspec.Struct, frozen=True):
    """One process's access; connections are opened when first needed."""

    inbox: PostgresInbox
    transactions: Transactions
    async_transactions: AsyncTransactions
    batches: BatchTransactions
    async_batches: AsyncBatchTransactions
    claims: Claims
    suspects: PostgresSuspects


@asynccontextmanager
async def consumer_database(
    settings: DatabaseSettings, application_name: str, queue: str
) -> AsyncIterator[ConsumerDatabase]:
    """The database of one pool, which consumes the configured queue `queue`; connections are hung
    up at the end of the block."""
    database = Database(settings, application_name)
    threads = Connections(database)
    tasks = AsyncConnections(database)
    try:
        yield ConsumerDatabase(
            PostgresInbox(database, tasks, threads),
            Transactions(threads, database.schema),
            AsyncTransactions(tasks, database.schema),
            BatchTransactions(threads, database.schema),
            AsyncBatchTransactions(tasks, database.schema),
            Claims(database.schema),
            PostgresSuspects(database, tasks, queue),
        )
    finally:
        threads.close()
        await tasks.close()
