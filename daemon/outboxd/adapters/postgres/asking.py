"""The connection of an operator's command: short statements, each a transaction of its own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg

from outboxd.adapters.conninfo import DatabaseError, database_errors
from outboxd.adapters.postgres.sessions import Limits, conninfo, statement
from outboxd.core.settings import DatabaseSettings


class Asking:
    """Asks one schema. The limits of `sessions.SERVER_LIMITS` hold for each statement, so that no
    command stands in the way of the daemon for long, whatever it was asked for."""

    def __init__(self, connection: psycopg.Connection[Any], database: DatabaseSettings) -> None:
        self._connection = connection
        self._database = database
        self._limits = Limits(database.schema)
        self._statements: dict[str, bytes] = {}

    def rows(
        self, query: LiteralString, parameters: Mapping[str, Any]
    ) -> Sequence[tuple[Any, ...]]:
        """What the statement returns. Raises DatabaseError."""
        ready = self._statements.get(query)
        if ready is None:
            ready = self._limits.before(statement(query, self._database.schema))
            self._statements[query] = ready
        with database_errors(self._database.url, "asking the database"):
            try:
                cursor = psycopg.ClientCursor(self._connection)
                cursor.execute(ready, parameters)
                for _ in range(self._limits.results):
                    cursor.nextset()
                return cursor.fetchall()
            except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable) as error:
                # Operational errors as well, for which a look at the url would be advised.
                raise DatabaseError(
                    f"the database is too busy for this now ({error.diag.message_primary}); what "
                    "was done before stays done: repeat the command, with narrower filters"
                ) from error

    def now(self) -> float:
        """Unix time by the database's clock, by which all its times are."""
        ((now,),) = self.rows("SELECT extract(epoch FROM clock_timestamp())::float8", {})
        return float(now)


@contextmanager
def asking(database: DatabaseSettings, application_name: str) -> Iterator[Asking]:
    """Connected for the length of the block. Raises DatabaseError."""
    with database_errors(database.url, "connecting"):
        # Without prepared statements: a transaction pooler gives each statement another server.
        connection = psycopg.connect(
            conninfo(database, application_name), autocommit=True, prepare_threshold=None
        )
    with connection:
        yield Asking(connection, database)
