"""yoyo, told to use our connection string, our schema and our lock."""

# mypy: disallow-subclassing-any=False
# (yoyo has no type information)

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend
from yoyo.connections import DatabaseURI
from yoyo.migrations import MigrationList, read_migrations


class SchemaBackend(PostgresqlPsycopgBackend):
    """Applies migrations where `target` says; whoever uses it holds the lock of that schema.

    Every statement is within a transaction that has set its own search path. A transaction pooler
    may have another server for the next one: a SET would stay with a server connection that is
    somebody else's next, and PgBouncer refuses the path as a start option or, told to ignore such
    options, drops it without a word, and the tables would be made in the schema `public`.
    """

    def begin(self) -> None:
        super().begin()
        self.execute(self.uri.args["set_path"])

    def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> Any:
        if self._in_transaction:
            return super().execute(sql, params)
        with self.transaction():
            return super().execute(sql, params)

    def connect(self, dburi: DatabaseURI) -> Any:
        args = {name: value for name, value in dburi.args.items() if name != "set_path"}
        return super().connect(dburi._replace(args=args))

    @contextmanager
    def lock(self, timeout: float = 10) -> Iterator[None]:
        # yoyo's own lock is a row, which a killed run leaves behind for ever.
        yield

    def get_log_data(self, migration: Any = None, operation: str = "apply") -> Mapping[str, Any]:
        # yoyo asks for the login name and the full domain name: the first does not exist for a
        # container's arbitrary user id, the second waits for a DNS server.
        return {
            "id": str(uuid4()),
            "migration_id": migration.id if migration else None,
            "migration_hash": migration.hash if migration else None,
            "username": str(os.getuid()),
            "hostname": socket.gethostname(),
            "created_at_utc": datetime.now(UTC).replace(tzinfo=None),
            "operation": operation,
        }


def target(conninfo: str, schema: str) -> DatabaseURI:
    """What yoyo makes of a URL, made of a libpq connection string, which says more than one."""
    parameters = conninfo_to_dict(conninfo)
    set_path = sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(schema))
    # Nor are statements prepared, which the next server would not know.
    ours = {"set_path": set_path.as_string(None), "prepare_threshold": None}
    return DatabaseURI(
        scheme="postgresql+psycopg",
        username=None,
        password=None,
        hostname=None,
        port=None,
        database=parameters.pop("dbname", None),
        args={**parameters, **ours},
    )


def read_directory(directory: Path) -> MigrationList:
    """The migrations of a folder; `SchemaBackend.apply_one` applies one of them."""
    return read_migrations(str(directory))
