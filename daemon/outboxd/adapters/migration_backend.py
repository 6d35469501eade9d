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

from psycopg.conninfo import conninfo_to_dict
from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend
from yoyo.connections import DatabaseURI
from yoyo.migrations import MigrationList, read_migrations


class SchemaBackend(PostgresqlPsycopgBackend):
    """Applies migrations where `target` says; whoever uses it holds the lock of that schema."""

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
    # As a start option rather than SET: behind a transaction pooler a SET would stay with a server
    # connection that is somebody else's next, while this is refused loudly.
    options = f"{parameters.get('options') or ''} -c search_path={schema}"
    return DatabaseURI(
        scheme="postgresql+psycopg",
        username=None,
        password=None,
        hostname=None,
        port=None,
        database=parameters.pop("dbname", None),
        args={**parameters, "options": options},
    )


def read_directory(directory: Path) -> MigrationList:
    """The migrations of a folder; `SchemaBackend.apply_one` applies one of them."""
    return read_migrations(str(directory))
