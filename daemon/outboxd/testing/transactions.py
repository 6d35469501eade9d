"""A handler's changes on the test's own connection: kept if and only if the handler succeeds."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import psycopg

from outboxd.adapters.handlers.loading import LoadedHandler
from outboxd.adapters.postgres.marks import objection
from outboxd.core.judging import Ending, Raised, Returned, describe
from outboxd.core.outcomes import Done
from outboxd.core.settings import InboxMode


class _Undone(Exception):
    """Leaves a transaction without committing.

    Not psycopg.Rollback: that comes back out of the block when there is nothing left to roll back,
    after a handler that has committed in SQL or hung up.
    """


CHECK_CONSTRAINTS = "SET CONSTRAINTS ALL IMMEDIATE"
"""Looks at deferred constraints now; undone with its savepoint, it leaves them deferred."""


def check_tx(handler: LoadedHandler, tx: Any, inbox: InboxMode) -> None:
    """Raises TypeError if the handler cannot be given this."""
    if tx is not None and inbox != "transaction":
        raise TypeError(f'with inbox="{inbox}" the daemon has no `tx` to give: leave it out')
    if tx is None:
        if handler.signature.wants_tx:
            raise TypeError(
                f"handler {handler.name} asks for `tx`: give it a connection, run(..., tx=...)"
            )
        return
    wrong = psycopg.Connection if handler.signature.asynchronous else psycopg.AsyncConnection
    if isinstance(tx, wrong):
        kind = "asynchronous" if handler.signature.asynchronous else "synchronous"
        raise TypeError(f"handler {handler.name} is {kind}, and `tx` is a {type(tx).__name__}")


def within(tx: Any, handler: str, call: Callable[[], Ending]) -> Ending:
    """The ending of the call, or what the database has against it."""
    if not isinstance(tx, psycopg.Connection):
        return call()
    with suppress(_Undone), tx.transaction():
        ending = _ended(tx, handler, call())
        if _done(ending):
            ending = _committable(tx, ending)
        if not _done(ending):
            raise _Undone
    return ending


async def within_async(tx: Any, handler: str, call: Callable[[], Awaitable[Ending]]) -> Ending:
    """The same for an asynchronous handler and connection."""
    if not isinstance(tx, psycopg.AsyncConnection):
        return await call()
    with suppress(_Undone):
        async with tx.transaction():
            ending = _ended(tx, handler, await call())
            if _done(ending):
                ending = await _committable_async(tx, ending)
            if not _done(ending):
                raise _Undone
    return ending


def _ended(
    tx: psycopg.Connection[Any] | psycopg.AsyncConnection[Any], handler: str, ending: Ending
) -> Ending:
    against = objection(tx, handler, ending)
    return ending if against is None else against


def _committable(tx: psycopg.Connection[Any], ending: Ending) -> Ending:
    try:
        with tx.transaction(force_rollback=True):
            tx.execute(CHECK_CONSTRAINTS)
    except psycopg.Error as error:
        return Raised(describe(error), error.sqlstate)
    return ending


async def _committable_async(tx: psycopg.AsyncConnection[Any], ending: Ending) -> Ending:
    try:
        async with tx.transaction(force_rollback=True):
            await tx.execute(CHECK_CONSTRAINTS)
    except psycopg.Error as error:
        return Raised(describe(error), error.sqlstate)
    return ending


def _done(ending: Ending) -> bool:
    return isinstance(ending, Returned) and isinstance(ending.outcome, Done)
