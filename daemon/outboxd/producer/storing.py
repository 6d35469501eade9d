"""Executes a producer's statements in the transaction of the caller, synchronously or not."""

from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

import psycopg

from outboxd.core.errors import PublishRefused
from outboxd.producer.statements import Statement
from outboxd.raw_connections import (
    AnyConnection,
    commits_by_itself,
    flush_async_session,
    flush_session,
    is_asynchronous,
    raw_async_connection,
    raw_connection,
)

T = TypeVar("T")


def store(connection: object, statements: Sequence[Statement], answer: T) -> T | Awaitable[T]:
    """Execute them and return the answer; an awaitable of it for an asynchronous connection.

    Raises PublishRefused if the connection would commit them by themselves.
    """
    if isinstance(connection, psycopg.AsyncConnection):
        _check_transaction(connection)  # now, not when it is awaited
    if is_asynchronous(connection):
        return _store_async(connection, statements, answer)
    # A changed row is locked by its UPDATE, which a session holds back. Were `seq` drawn before it,
    # two writers that take turns on that row could still be numbered in the wrong order.
    flush_session(connection)
    raw = raw_connection(connection)
    _check_transaction(raw)
    for statement in statements:
        _cursor(raw).execute(statement.query, statement.parameters)
    return answer


async def _store_async(connection: Any, statements: Sequence[Statement], answer: T) -> T:
    await flush_async_session(connection)
    raw = await raw_async_connection(connection)
    _check_transaction(raw)
    for statement in statements:
        await psycopg.AsyncCursor(raw).execute(statement.query, statement.parameters)
    return answer


def _cursor(raw: psycopg.Connection[Any]) -> psycopg.Cursor[Any]:
    """Never the connection's own kind of cursor, which may want its parameters as $1."""
    return psycopg.Cursor(raw)


def _check_transaction(connection: AnyConnection) -> None:
    if commits_by_itself(connection):
        raise PublishRefused(
            "the connection is in autocommit mode and no transaction is open, so the event would "
            "be published even if the change it tells of is not stored; call this inside "
            "`with connection.transaction():` (Django: `transaction.atomic()`, SQLAlchemy: "
            "`engine.begin()` without AUTOCOMMIT), together with that change"
        )
