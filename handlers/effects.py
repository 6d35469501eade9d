"""The ledger of what handlers have done, by which the demo and the tests count."""

from collections.abc import Sequence
from uuid import UUID

import psycopg
from psycopg import AsyncConnection

RECORD = "INSERT INTO shop.effects (event_id, handler) VALUES (%s, %s)"
"""Without a unique constraint on purpose: an effect that happened twice must show as two rows."""

RECORD_ALL = "INSERT INTO shop.effects (event_id, handler) SELECT unnest(%s::uuid[]), %s"


def record_effect(tx: psycopg.Connection, event_id: UUID, handler: str) -> None:
    """Append to the ledger in the transaction of the effect itself."""
    tx.execute(RECORD, (event_id, handler))


async def record_effects_async(
    tx: AsyncConnection, event_ids: Sequence[UUID], handler: str
) -> None:
    """The same for a handler that is a coroutine and takes batches."""
    await tx.execute(RECORD_ALL, (list(event_ids), handler))
