"""What libpq thinks of a connection string, said without quoting it."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict

from outboxd.core.errors import OutboxdError, SettingsError
from outboxd.core.redaction import without_secrets
from outboxd.core.settings import DatabaseSettings, Settings


class DatabaseError(OutboxdError):
    """PostgreSQL could not do what a command asked for."""


def conninfo_problems(settings: Settings) -> list[str]:
    """One line for each url of the database from which no connection can come."""
    if settings.database is None:
        return []
    urls = {"url": settings.database.url, "direct_url": settings.database.direct_url}
    return [
        # libpq's text quotes what it could not parse, a password with an unescaped / for one.
        f"[database] {name}: libpq cannot parse it; percent-encode / ? # @ : % in a user name or a "
        "password (the url is not shown)"
        for name, url in urls.items()
        if url is not None and not _parses(url)
    ]


def _parses(url: str) -> bool:
    try:
        conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return False
    return True


def database_of(settings: Settings) -> DatabaseSettings:
    """The database's settings, for a command that cannot do without.

    Raises SettingsError when there are none, or none that libpq understands.
    """
    if settings.database is None:
        raise SettingsError(["[database]: missing from the configuration; this command needs it"])
    if problems := conninfo_problems(settings):
        raise SettingsError(problems)
    return settings.database


@contextmanager
def database_errors(url: str, doing: str) -> Iterator[None]:
    """Errors of PostgreSQL as one line of a command: what was being done, what went wrong."""
    try:
        yield
    except psycopg.Error as error:
        words = without_secrets(error.diag.message_primary or str(error), url)
        raise DatabaseError(f"{doing}: {words}{_remedy(error)}") from error


def _remedy(error: psycopg.Error) -> str:
    match error:
        case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName():
            return " (run `outboxd migrate`)"
        case psycopg.errors.InsufficientPrivilege():
            return " (compare the role's rights with docs/database-roles.md)"
        case psycopg.OperationalError():
            return " (check [database] url)"
        case _:
            return ""
