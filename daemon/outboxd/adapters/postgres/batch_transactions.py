"""The inbox transaction of many events: all of them take effect, or none does."""

from collections.abc import Awaitable, Callable, Set
from typing import Any
from uuid import UUID

import psycopg

from outboxd.adapters.postgres.bracketing import AsyncBrackets, Bracketed, Brackets
from outboxd.adapters.postgres.marks import BatchMarks, BatchStatements
from outboxd.adapters.postgres.pools import AsyncConnections, Connections
from outboxd.core.judging import Ending

Invoke = Callable[[psycopg.Connection[Any], BatchMarks], Ending]
InvokeAsync = Callable[[psycopg.AsyncConnection[Any], BatchMarks], Awaitable[Ending]]


class BatchTransactions(Brackets[BatchMarks]):
    """For synchronous handlers: the whole transaction runs in the caller's thread."""

    def __init__(self, connections: Connections, schema: str) -> None:
        super().__init__(connections, BatchStatements(schema))

    def run(self, event_ids: Set[UUID], handler: str, invoke: Invoke) -> Bracketed[BatchMarks]:
        """Call `invoke` with the transaction's connection and the events that are new, unless none
        is, and commit if it ends in Done."""
        return self.bracket(BatchMarks(frozenset(event_ids), handler), invoke)


class AsyncBatchTransactions(AsyncBrackets[BatchMarks]):
    """For asynchronous handlers: the same in the event loop."""

    def __init__(self, connections: AsyncConnections, schema: str) -> None:
        super().__init__(connections, BatchStatements(schema))

    async def run(
        self, event_ids: Set[UUID], handler: str, invoke: InvokeAsync
    ) -> Bracketed[BatchMarks]:
        """As BatchTransactions.run."""
        return await self.bracket(BatchMarks(frozenset(event_ids), handler), invoke)
