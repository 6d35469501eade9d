"""The psycopg connection behind what an application calls its connection.

SQLAlchemy and Django are recognised without being imported: who hands over one of their objects has
imported them.
"""

import sys
from typing import Any, TypeAlias

from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

AnyConnection: TypeAlias = Connection[Any] | AsyncConnection[Any]

_SQLALCHEMY_CONNECTION = ("sqlalchemy.engine:Connection",)
_SQLALCHEMY_SESSION = ("sqlalchemy.orm:Session", "sqlalchemy.orm:scoped_session")
_SQLALCHEMY_ASYNC_CONNECTION = ("sqlalchemy.ext.asyncio:AsyncConnection",)
_SQLALCHEMY_ASYNC_SESSION = (
    "sqlalchemy.ext.asyncio:AsyncSession",
    "sqlalchemy.ext.asyncio:async_scoped_session",
)
_DJANGO = (
    "django.db.backends.base.base:BaseDatabaseWrapper",
    "django.utils.connection:ConnectionProxy",
)


def is_asynchronous(connection: object) -> bool:
    """Whether it is for `raw_async_connection`."""
    return isinstance(connection, AsyncConnection) or _is(
        connection, *_SQLALCHEMY_ASYNC_CONNECTION, *_SQLALCHEMY_ASYNC_SESSION
    )


def raw_connection(connection: Any) -> Connection[Any]:
    """The psycopg connection behind a psycopg Connection, an SQLAlchemy Connection or Session, or a
    Django connection. What it executes belongs to that object's transaction.

    Raises TypeError for anything else, and for another driver than psycopg 3.
    """
    if isinstance(connection, Connection):
        return connection
    if _is(connection, *_SQLALCHEMY_SESSION):
        return _of_sqlalchemy(connection.connection())
    if _is(connection, *_SQLALCHEMY_CONNECTION):
        return _of_sqlalchemy(connection)
    if _is(connection, *_DJANGO):
        connection.ensure_connection()
        return _driven(connection.connection)
    raise _unknown(connection)


async def raw_async_connection(connection: Any) -> AsyncConnection[Any]:
    """The same behind a psycopg AsyncConnection, an SQLAlchemy AsyncConnection or AsyncSession."""
    if isinstance(connection, AsyncConnection):
        return connection
    if _is(connection, *_SQLALCHEMY_ASYNC_SESSION):
        connection = await connection.connection()
    elif not _is(connection, *_SQLALCHEMY_ASYNC_CONNECTION):
        raise _unknown(connection)
    if not connection.in_transaction():
        await connection.begin()  # as in _of_sqlalchemy
    driven = (await connection.get_raw_connection()).driver_connection
    if not isinstance(driven, AsyncConnection):
        raise _other_driver(driven)
    return driven


def flush_session(connection: Any) -> None:
    """Have an SQLAlchemy Session write the changes that it holds back, as it does before a query;
    nothing for any other connection, and nothing where the application has switched that off."""
    if _is(connection, *_SQLALCHEMY_SESSION) and connection.autoflush:
        connection.flush()


async def flush_async_session(connection: Any) -> None:
    """The same for an AsyncSession."""
    if _is(connection, *_SQLALCHEMY_ASYNC_SESSION) and connection.autoflush:
        await connection.flush()


def commits_by_itself(connection: AnyConnection) -> bool:
    """Whether what is executed now would be a transaction of its own."""
    idle = connection.info.transaction_status == TransactionStatus.IDLE
    return bool(connection.autocommit) and idle


def _of_sqlalchemy(connection: Any) -> Connection[Any]:
    if not connection.in_transaction():
        # As its own execute() does. Without it the COMMIT of a transaction that only psycopg knows
        # of would be left out.
        connection.begin()
    return _driven(connection.connection.driver_connection)


def _driven(connection: object) -> Connection[Any]:
    if not isinstance(connection, Connection):
        raise _other_driver(connection)
    return connection


def _is(thing: object, *places: str) -> bool:
    """Whether it is of one of the classes; whoever has an object has its class's module."""
    for place in places:
        module, _, name = place.partition(":")
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(thing, kind):
            return True
    return False


def _unknown(connection: object) -> TypeError:
    return TypeError(
        "expected a psycopg connection, an SQLAlchemy Connection or Session, or Django's "
        f"connection, and this is a {_name(connection)}"
    )


def _other_driver(connection: object) -> TypeError:
    return TypeError(
        f"outboxd works over psycopg 3, and this connection's driver is {_name(connection)}; "
        "with SQLAlchemy write postgresql+psycopg://, with Django have psycopg 3 installed"
    )


def _name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
