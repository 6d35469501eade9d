"""The inbox transaction of one event."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import psycopg

from outboxd.adapters.postgres.bracketing import AsyncBrackets, Bracketed, Brackets
from outboxd.adapters.postgres.marks import Mark, Statements, left_over
from outboxd.adapters.postgres.pools import AsyncConnections, Connections
from outboxd.core.judging import Ending

Invoke = Callable[[psycopg.Connection[Any]], Ending]
InvokeAsync = Callable[[psycopg.AsyncConnection[Any]], Awaitable[Ending]]


class Transactions(Brackets[Mark]):
    """For synchronous handlers: the whole transaction runs in the caller's thread."""

    def __init__(self, connections: Connections, schema: str) -> None:
        super().__init__(connections, Statements(schema))

    def run(self, event_id: UUID, handler: str, invoke: Invoke) -> Ending:
        """Call `invoke` with the transaction's connection, unless the event is marked already, and
        commit if it ends in Done. Whatever the database does is told by the ending."""
        mark = Mark(event_id, handler)
        return _ending(handler, self.bracket(mark, lambda connection, _: invoke(connection)))


class AsyncTransactions(AsyncBrackets[Mark]):
    """For asynchronous handlers: the same in the event loop."""

    def __init__(self, connections: AsyncConnections, schema: str) -> None:
        super().__init__(connections, Statements(schema))

    async def run(self, event_id: UUID, handler: str, invoke: InvokeAsync) -> Ending:
        """As Transactions.run."""
        mark = Mark(event_id, handler)
        return _ending(handler, await self.bracket(mark, lambda connection, _: invoke(connection)))


def _ending(handler: str, result: Bracketed[Mark]) -> Ending:
    return result.ending if result.left_over is None else left_over(handler)
