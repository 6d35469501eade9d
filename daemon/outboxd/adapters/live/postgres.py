"""What PostgreSQL says of itself and of outboxd's tables. Nothing is written or locked."""

import time
from collections.abc import Callable
from typing import LiteralString, TypeVar

import psycopg
from psycopg.rows import TupleRow

from outboxd.adapters.live import questions
from outboxd.adapters.live.asking import Asking
from outboxd.adapters.live.pooling import pooling
from outboxd.adapters.migrations import Migrations
from outboxd.adapters.postgres.sessions import (
    Limits,
    Parameters,
    conninfo,
    outage_kind,
    statement,
)
from outboxd.adapters.postgres.wake_ups import ENABLED
from outboxd.core.errors import OutageKind, OutboxdError, Unavailable
from outboxd.core.live.facts import (
    Activity,
    DatabaseFacts,
    Direct,
    Grant,
    Index,
    Migration,
    OldTransaction,
    Pooling,
    Server,
    Slot,
    Table,
    Unanswered,
)
from outboxd.core.live.grants import needed, publishing
from outboxd.core.redaction import without_secrets
from outboxd.core.settings import DatabaseSettings, Settings
from outboxd.resources import project_directory

T = TypeVar("T")

NAME = "outboxd check"


def database_facts(settings: Settings, seconds: float) -> DatabaseFacts | Unanswered | None:
    """What there is; None without a database. No question takes longer than `seconds`, and none is
    asked after one that was not answered in time."""
    if settings.database is None:
        return None
    ask = Asking(seconds)
    database = settings.database
    connection = ask("connecting to [database] url", _told(database.url, _connect(database)))
    if isinstance(connection, Unanswered):
        return connection
    ask.afterwards = connection.close
    try:
        return _Interview(settings, database, connection, ask).facts()
    finally:
        if not ask.overdue:  # a thread is at it: psycopg would read freed memory
            connection.close()


class _Interview:
    def __init__(
        self,
        settings: Settings,
        database: DatabaseSettings,
        connection: psycopg.Connection[TupleRow],
        ask: Asking,
    ) -> None:
        self._settings = settings
        self._database = database
        self._connection = connection
        self._ask = ask
        self._limits = Limits(database.schema)

    def facts(self) -> DatabaseFacts | Unanswered:
        server = self._asked("looking at the server", self._server)
        if isinstance(server, Unanswered):
            return server
        usage = self._asked("looking for the schema", self._usage)
        return DatabaseFacts(
            server=server,
            usage=usage,
            pooling=self._asked("looking for a pooler", self._pooling),
            migrations=self._asked("reading the schema's version", self._migrations),
            tables=self._asked("looking at the tables", self._tables),
            indexes=self._asked("looking at the indexes", self._indexes),
            lacking=self._asked("looking at the role's rights", self._lacking),
            buckets=self._asked("counting buckets", self._buckets) if usage is True else None,
            sequence_cache=self._asked("looking at the sequence", self._sequence),
            wakes_relays=self._asked("looking at the trigger", self._trigger),
            activity=self._asked("looking for old transactions", self._activity),
            slots=self._asked("looking at replication slots", self._slots),
            direct=self._direct(),
        )

    def _asked(self, what: str, question: Callable[[], T]) -> T | Unanswered:
        return self._ask(what, _told(self._database.url, question, what))

    def _rows(self, query: LiteralString, parameters: Parameters | None = None) -> list[TupleRow]:
        """With the daemon's own limits, and in one message, so that a pooler does not matter."""
        cursor = psycopg.ClientCursor(self._connection)
        text = statement(query, self._database.schema) if "{schema}" in query else query.encode()
        cursor.execute(self._limits.before(text), parameters or {})
        for _ in range(self._limits.results):
            cursor.nextset()
        return cursor.fetchall()

    @property
    def _schema(self) -> dict[str, object]:
        return {"schema": self._database.schema}

    def _server(self) -> Server:
        ((role, database, version, number, standby, role_limit, limit, superuser, others),) = (
            self._rows(questions.SERVER)
        )
        names = list(questions.SETTINGS)
        rows = self._rows(questions.SETTINGS_NOW, {"names": names})
        settings = {name: value for name, value in rows if value is not None}
        return Server(
            role=role,
            database=database,
            version=version,
            version_number=number,
            standby=standby,
            settings=settings,
            role_limit=role_limit,
            database_limit=limit,
            superuser=superuser,
            others=others,
            ahead_seconds=self._ahead(),
        )

    def _ahead(self) -> float:
        before = time.time()
        ((theirs,),) = self._rows(questions.CLOCK)
        return float(theirs) - (before + time.time()) / 2

    def _pooling(self) -> Pooling:
        return pooling(conninfo(self._database, NAME), self._connection)

    def _migrations(self) -> tuple[Migration, ...]:
        directory = project_directory() / "migrations" / "outboxd"
        known = Migrations(conninfo(self._database, NAME), self._database.schema, directory)
        return tuple(
            Migration(name=each.name, applied=each.applied, unknown=each.unknown)
            for each in known.status()
        )

    def _tables(self) -> dict[str, Table]:
        return {
            name: Table(
                kind=kind,
                persistence=persistence,
                hides_rows=hides_rows,
                options=dict(option.split("=", 1) for option in options),
                live_rows=live,
                dead_rows=dead,
            )
            for name, kind, persistence, hides_rows, options, live, dead in self._rows(
                questions.TABLES, self._schema
            )
        }

    def _indexes(self) -> tuple[Index, ...]:
        return tuple(
            Index(name=name, table=table, valid=valid, unique=unique)
            for name, table, valid, unique in self._rows(questions.INDEXES, self._schema)
        )

    def _usage(self) -> bool | None:
        rows = self._rows(questions.USAGE, self._schema)
        return rows[0][0] if rows else None

    def _lacking(self) -> frozenset[Grant]:
        grants = sorted(
            needed(self._settings) | publishing(self._settings),
            key=lambda each: (each.table, each.privilege, each.column or ""),
        )
        rows = self._rows(
            questions.LACKING,
            {
                **self._schema,
                "tables": [grant.table for grant in grants],
                "privileges": [grant.privilege for grant in grants],
                "columns": [grant.column or "" for grant in grants],
            },
        )
        return frozenset(Grant(table, privilege, column) for table, privilege, column in rows)

    def _buckets(self) -> int | None:
        try:
            ((number,),) = self._rows(questions.BUCKETS)
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
            return None  # told by its grant, or as a missing table
        return int(number)

    def _sequence(self) -> int | None:
        rows = self._rows(questions.SEQUENCE, self._schema)
        return rows[0][0] if rows else None

    def _trigger(self) -> bool | None:
        rows = self._rows(ENABLED, self._schema)
        return rows[0][0] if rows else None

    def _activity(self) -> Activity:
        rows = self._rows(questions.OLD, {"old": questions.OLD_SECONDS})
        ((all_visible,),) = self._rows(questions.ALL_VISIBLE)
        return Activity(
            old=tuple(OldTransaction(who=who, age_seconds=age) for who, age in rows),
            all_visible=all_visible,
        )

    def _slots(self) -> tuple[Slot, ...]:
        return tuple(
            Slot(name=name, active=active, held_bytes=held)
            for name, active, held in self._rows(questions.SLOTS)
        )

    def _direct(self) -> Direct | Unanswered | None:
        url = self._database.direct_url
        if url is None:
            return None
        there = DatabaseSettings(
            url=url,
            schema=self._database.schema,
            connect_timeout_seconds=self._database.connect_timeout_seconds,
        )

        def look() -> Direct:
            with _connect(there)() as connection:
                same = connection.execute(questions.SAME_DATABASE).fetchone()
                here = self._rows(questions.SAME_DATABASE)[0]
                return Direct(
                    same_database=same == here, pooling=pooling(conninfo(there, NAME), connection)
                )

        what = "connecting to [database] direct_url"
        return self._ask(what, _told(url, look, what))


def _connect(database: DatabaseSettings) -> Callable[[], psycopg.Connection[TupleRow]]:
    return lambda: psycopg.connect(
        conninfo(database, NAME), autocommit=True, prepare_threshold=None
    )


def _told(
    url: str, question: Callable[[], T], doing: str = "connecting to [database] url"
) -> Callable[[], T]:
    """The question, whose errors are told without the password."""

    def asked() -> T:
        try:
            return question()
        except psycopg.Error as error:
            words = error.diag.message_primary or str(error)
            kind = outage_kind(error) or OutageKind.OTHER
            raise Unavailable(f"{doing}: {without_secrets(words, url)}", kind) from error
        except Unavailable as error:
            raise Unavailable(f"{doing}: {without_secrets(str(error), url)}", error.kind) from error
        except OutboxdError as error:
            raise Unavailable(f"{doing}: {error}", OutageKind.DENIED) from error

    return asked
