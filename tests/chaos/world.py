"""What the daemon lives in: a PostgreSQL, a local AWS, its configuration; and the daemon, again."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg

from outboxd.adapters.configuration import load_settings
from outboxd.adapters.migrations import Migrations
from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.settings import Settings
from outboxd.demo.aws import local_aws, use_credentials
from outboxd.demo.postgres import EmbeddedPostgres, embedded_postgres
from outboxd.demo.queues import Queues
from outboxd.demo.supervisor import Supervisor, supervising
from outboxd.resources import project_directory
from outboxd.testing.aws import LocalAws
from tests.chaos.configuration import configuration
from tests.chaos.ledger import EFFECTS_TABLE, Letter, read_letters


class World:
    """Everything around the daemon. It survives whatever is done to that."""

    def __init__(
        self,
        directory: Path,
        postgres: EmbeddedPostgres,
        aws: LocalAws,
        settings: Settings,
        stack: ExitStack,
    ) -> None:
        self.directory = directory
        self.postgres = postgres
        self.dsn = postgres.dsn_of("chaos")
        self.aws = aws
        self.settings = settings
        self._stack = stack
        self.daemons: list[Supervisor] = []

    @property
    def daemon(self) -> Supervisor:
        """The latest one."""
        return self.daemons[-1]

    @property
    def after(self) -> Path:
        """Where the effects of the handler without a transaction are."""
        return self.directory / "after.log"

    def start_daemon(self) -> Supervisor:
        """Start one; it is stopped at the end, if it lives that long."""
        log = self.directory / f"daemon-{len(self.daemons) + 1}.log"
        started = supervising(self.directory / "outboxd.toml", self.settings, log)
        self.daemons.append(self._stack.enter_context(started))
        return self.daemon

    def send_to_work(self) -> Callable[[str], None]:
        """Sends a body past the outbox, until it is accepted."""
        client = sqs_client(self.settings.aws, connections=1)
        self._stack.enter_context(closing(client))
        url = client.get_queue_url(QueueName="work")["QueueUrl"]

        def send(body: str) -> None:
            while True:
                try:
                    client.send_message(QueueUrl=url, MessageBody=body)
                    return
                except Exception:  # AWS is made to fail, and a copy of poison is no harm
                    continue

        return send

    def messages(self) -> dict[str, int]:
        """How many messages each queue holds, in whatever state; dead letters are apart."""
        depths = self.aws.queues()
        return {
            name: depths[self.settings.sqs_queue_name(name)].total for name in self.settings.queues
        }

    def in_flight(self) -> dict[str, int]:
        """How many messages of each queue are hidden."""
        depths = self.aws.queues()
        called = {name: self.settings.sqs_queue_name(name) for name in self.settings.queues}
        return {n: depths[c].in_flight + depths[c].delayed for n, c in called.items()}

    def letters(self) -> tuple[Letter, ...]:
        """All dead letters, which are taken out of their queues."""
        names = [self.settings.dead_letter_name(name) for name in self.settings.queues]
        return tuple(x for name in names for x in read_letters(self.settings.aws, name))

    def backlog(self) -> int:
        """How many events of the outbox wait to be published."""
        with closing(psycopg.connect(self.dsn)) as connection:
            rows = connection.execute(
                "SELECT count(*) FROM outboxd.outbox_events"
                " WHERE published_at IS NULL AND dead_at IS NULL"
            ).fetchall()
        return int(rows[0][0])


@contextmanager
def world(directory: Path, without: frozenset[str]) -> Iterator[World]:
    """A migrated database and provisioned queues, while the block lasts."""
    with ExitStack() as stack:
        # Durable: without synchronous_commit an immediate stop loses commits, as it may.
        postgres = stack.enter_context(embedded_postgres(durable=True))
        dsn = postgres.create_database("chaos")
        endpoint = stack.enter_context(local_aws(directory / "localaws.log"))
        use_credentials(endpoint)
        path = directory / "outboxd.toml"
        path.write_text(configuration(dsn, endpoint, directory / "after.log", without))
        settings = load_settings(path, os.environ)
        Migrations(dsn, "outboxd", project_directory() / "migrations" / "outboxd").up()
        with closing(psycopg.connect(dsn, autocommit=True)) as connection:
            connection.execute(EFFECTS_TABLE)
        Queues(settings).create()
        yield World(directory, postgres, LocalAws(endpoint), settings, stack)
