"""Brings a schema of the database to the version that this code knows, and checks that it is."""

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import psycopg
from psycopg import sql

from outboxd.core.errors import OutboxdError, Unavailable

logger = logging.getLogger(__name__)

BOOKKEEPING_TABLE = "_yoyo_migration"
"""Which migrations are applied; in the same schema as what they made."""

ROLLBACK_SUFFIX = ".rollback.sql"


class SchemaMismatch(OutboxdError):
    """Database and code are of different versions; the message says which one to upgrade."""


class MigrationFailed(OutboxdError):
    """A migration's SQL failed and was rolled back; those before it stay applied."""


class MigrationState(msgspec.Struct, frozen=True):
    """One migration: of the code, of the database, or of both."""

    name: str
    applied: bool
    unknown: bool
    """The database has it, this version of the code does not."""


class Migrations:
    """The migrations of one folder in one schema of one database.

    `status` and `check_version` read only; `up` and `down` need the rights of the schema's owner.
    All may go through a transaction pooler, `up` and `down` if it has two servers for them.
    """

    def __init__(self, conninfo: str, schema: str, directory: Path) -> None:
        self._conninfo = conninfo
        self._schema = schema
        self._directory = directory

    def up(self) -> list[str]:
        """Apply what is missing, each in its own transaction, and return the names applied."""
        with self._locked():
            self._create_schema()
            states = self.status()
            self._refuse_unknown(states)
            missing = [state.name for state in states if not state.applied]
            self._run(missing, "apply")
        return missing

    def down(self, count: int = 1) -> list[str]:
        """Roll the last `count` back, newest first, and return their names."""
        with self._locked():
            states = self.status()
            self._refuse_unknown(states)
            applied = [state.name for state in reversed(states) if state.applied]
            doomed = applied[: max(count, 0)]
            for name in doomed:
                if not (self._directory / f"{name}{ROLLBACK_SUFFIX}").exists():
                    raise MigrationFailed(
                        f"migration {name} cannot be rolled back: it has no way down"
                    )
            self._run(doomed, "rollback")
        return doomed

    def status(self) -> list[MigrationState]:
        """Every migration in order; those that only the database knows come last."""
        known, applied = self._known(), self._applied()
        return [
            *(MigrationState(name, name in applied, unknown=False) for name in known),
            *(MigrationState(name, True, unknown=True) for name in applied if name not in known),
        ]

    def check_version(self) -> None:
        """Raise `SchemaMismatch` unless the schema is exactly of the version this code knows."""
        states = self.status()
        self._refuse_unknown(states)
        missing = [state.name for state in states if not state.applied]
        if missing:
            raise SchemaMismatch(
                f"the database lacks {_counted(missing)} in schema {self._schema!r} "
                f"(first: {missing[0]}): run `outboxd migrate`"
            )

    def _refuse_unknown(self, states: list[MigrationState]) -> None:
        unknown = [state.name for state in states if state.unknown]
        if unknown:
            raise SchemaMismatch(
                f"the database has {_counted(unknown)} in schema {self._schema!r} that this "
                f"version of outboxd does not know (first: {unknown[0]}): upgrade outboxd, or run "
                "`outboxd migrate down` with the version that applied it"
            )

    def _known(self) -> list[str]:
        """Names in the order of application: the files' names are numbered."""
        return sorted(
            path.stem
            for path in self._directory.glob("*.sql")
            if not path.name.endswith(ROLLBACK_SUFFIX)
        )

    def _applied(self) -> list[str]:
        """Names that the database has. By plain SQL: yoyo would create its tables to answer."""
        table = sql.Identifier(self._schema, BOOKKEEPING_TABLE)
        query = sql.SQL("SELECT migration_id FROM {} ORDER BY migration_id").format(table)
        with self._connected() as connection:
            try:
                return [name for (name,) in connection.execute(query)]
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                return []
            except psycopg.errors.InsufficientPrivilege as error:
                raise SchemaMismatch(
                    f"the version of schema {self._schema!r} cannot be read ({error}): "
                    "grant the role its rights as docs/database-roles.md says"
                ) from error

    def _create_schema(self) -> None:
        with self._connected() as connection:
            # Looked up first: IF NOT EXISTS asks for the right to create even when it exists.
            exists = connection.execute(
                "SELECT 1 FROM pg_namespace WHERE nspname = %s", [self._schema]
            ).fetchone()
            if exists is None:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self._schema)))

    def _run(self, names: list[str], direction: str) -> None:
        if not names:
            return
        # Here and not above: the daemon only checks the version, and need not carry yoyo.
        from outboxd.adapters.migration_backend import SchemaBackend, read_directory, target

        migrations = {migration.id: migration for migration in read_directory(self._directory)}
        with SchemaBackend(target(self._conninfo, self._schema), BOOKKEEPING_TABLE) as backend:
            act = backend.apply_one if direction == "apply" else backend.rollback_one
            for name in names:
                try:
                    act(migrations[name])
                except psycopg.Error as error:
                    raise MigrationFailed(
                        f"migration {name} failed in schema {self._schema!r} and was rolled back: "
                        f"{error}"
                    ) from error
                logger.info("migrated", extra={"migration": name, "direction": direction})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the schema's migration lock; it goes with the connection, so a kill frees it."""
        with self._connected() as guard, guard.transaction():
            # In a transaction of its own, so that it is one server connection behind any pooler.
            guard.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            guard.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('outboxd migrations ' || %s, 0))",
                [self._schema],
            )
            yield

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        try:
            with closing(psycopg.connect(self._conninfo, autocommit=True)) as connection:
                yield connection
        except psycopg.OperationalError as error:
            raise Unavailable(
                f"the database cannot be reached (see [database] url): {error}"
            ) from error


def _counted(names: list[str]) -> str:
    return f"{len(names)} migration{'s' if len(names) > 1 else ''}"
