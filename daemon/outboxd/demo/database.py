"""A database of the demo's own: in the embedded PostgreSQL, or in one that is given."""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from outboxd.adapters.migrations import Migrations
from outboxd.core.settings import DatabaseSettings
from outboxd.demo.errors import DemoError
from outboxd.demo.postgres import EmbeddedPostgresError, embedded_postgres
from outboxd.resources import project_directory

PLENTY = 1_000_000

MOST_CONNECTIONS = 200
"""Seven pools with ten calls at a time, the handlers' own, the shop's ten, and those that killed
children leave behind for a moment."""


@contextmanager
def demo_database(server_url: str | None) -> Iterator[str]:
    """A new database while the block lasts; how to connect to it.

    On a given server it gets a name of its own and is dropped afterwards, so that nothing of the
    server's own is touched.
    """
    if server_url is not None:
        with _database_on(server_url) as dsn:
            yield dsn
        return
    try:
        with embedded_postgres(max_connections=MOST_CONNECTIONS) as server:
            yield server.create_database("shop")
    except EmbeddedPostgresError as error:
        raise DemoError(str(error)) from error


def migrate(settings: DatabaseSettings) -> None:
    """Bring outboxd's tables and the shop's into the database."""
    migrations = project_directory() / "migrations"
    Migrations(settings.url, settings.schema, migrations / "outboxd").up()
    Migrations(settings.url, "shop", migrations / "shop").up()


def fill_shelves(dsn: str) -> None:
    """Have more of everything than any run sells."""
    from handlers.stock import restock

    with psycopg.connect(dsn) as connection:
        for (sku,) in connection.execute("SELECT sku FROM shop.products").fetchall():
            restock(connection, sku, PLENTY)


@contextmanager
def _database_on(server_url: str) -> Iterator[str]:
    name = f"outboxd_demo_{secrets.token_hex(4)}"
    _administer(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield make_conninfo(server_url, dbname=name)
    finally:
        # By force: a connection that a killed child left behind may not have been noticed yet.
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        _administer(server_url, drop.format(sql.Identifier(name)))


def _administer(server_url: str, statement: sql.Composed) -> None:
    try:
        with closing(psycopg.connect(server_url, autocommit=True)) as connection:
            connection.execute(statement)
    except psycopg.Error as error:
        raise DemoError(
            f"cannot manage a database on the given server: {error}; --database-url needs a role "
            "that may create databases"
        ) from error
