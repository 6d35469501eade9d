"""Where a run takes place: a database and a local AWS that nothing has been done to yet."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import msgspec
import psycopg

from benchmarks.local_sqs import QueueView
from benchmarks.server import Server, ServerKind, localaws
from outboxd.adapters.configuration import load_settings
from outboxd.adapters.migrations import Migrations
from outboxd.core.settings import Settings
from outboxd.demo.aws import PLACEHOLDER_CREDENTIALS
from outboxd.demo.postgres import EmbeddedPostgres, embedded_postgres
from outboxd.demo.private_folder import private_folder
from outboxd.demo.queues import Queues
from outboxd.resources import project_directory

PROJECT = Path(__file__).resolve().parent.parent
QUEUE = "work"
TEMPLATE = "benchmark_template"
MAX_CONNECTIONS = 200
"""Fifty pools have more than a hundred."""

EFFECTS = "CREATE TABLE public.effects (event_id uuid NOT NULL, number integer NOT NULL)"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One run's own; `database_pid` is the postmaster's, which all runs share."""

    dsn: str
    server: Server
    configuration: Path
    settings: Settings
    database_pid: int

    @property
    def endpoint(self) -> str:
        return self.server.endpoint

    def view(self) -> QueueView:
        """The server's view of the queue."""
        return self.server.view(self.endpoint, QUEUE)


class Grounds:
    """Makes places, each new, on one PostgreSQL that writes to disk as a real one does."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self._numbers = count(1)

    @contextmanager
    def place(self, configuration: str, kind: ServerKind = localaws) -> Iterator[Place]:
        """A place with this configuration, its `{dsn}` and `{endpoint}` filled in."""
        name = f"run_{next(self._numbers)}"
        dsn = self._server.create_database(name, TEMPLATE)
        path = self._folder / f"{name}.toml"
        try:
            with kind(self._folder / f"{name}-aws.log") as server:
                path.write_text(configuration.format(dsn=dsn, endpoint=server.endpoint))
                settings = load_settings(path, os.environ)
                Queues(settings).create()
                yield Place(
                    dsn=dsn,
                    server=server,
                    configuration=path,
                    settings=settings,
                    database_pid=self._server.pid,
                )
        finally:
            self._server.drop_database(name)


@contextmanager
def grounds() -> Iterator[Grounds]:
    """The embedded PostgreSQL with a migrated template, and a folder; gone afterwards."""
    os.environ.update(PLACEHOLDER_CREDENTIALS)
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder("outboxd-bench-"))
        server = stack.enter_context(embedded_postgres(max_connections=MAX_CONNECTIONS))
        dsn = server.create_database(TEMPLATE)
        Migrations(dsn, "outboxd", project_directory() / "migrations" / "outboxd").up()
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(EFFECTS)
        yield Grounds(server, folder)
