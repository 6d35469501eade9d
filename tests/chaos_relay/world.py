"""What the relays live in: a PostgreSQL and a sink; and the relays, each with a supervisor."""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psycopg

from outboxd.adapters.configuration import load_settings
from outboxd.adapters.migrations import Migrations
from outboxd.core.settings import Settings
from outboxd.demo.aws import use_credentials
from outboxd.demo.postgres import EmbeddedPostgres, embedded_postgres
from outboxd.demo.processes import Child, children_of
from outboxd.demo.supervisor import Supervisor, supervising
from outboxd.resources import project_directory
from tests.chaos_relay.producing import TABLE
from tests.chaos_relay.sink import Book, sink

LEASE_SECONDS = 8.0

# A relay that stands still is replaced by others when its lease ends, not by its supervisor: that
# is what is tested here. Children are killed all the time, and none may be given up for that.
CONFIGURATION = """
[database]
url = "{dsn}"

[aws]
endpoint_url = "{endpoint}"
connect_timeout_seconds = 1
read_timeout_seconds = 3

[http]
port = 0

[logging]
format = "json"

[supervisor]
grace_seconds = 20
failed_starts = 100000
crashes = 100000
heartbeat_deadline_seconds = 60
backoff_first_seconds = 0.1
backoff_cap_seconds = 1

[relay]
poll_max_seconds = 0.1
lease_seconds = {lease}
renew_seconds = 1.5
backoff_first_seconds = 0.05
backoff_cap_seconds = 0.5

[[relay.routes]]
events = "*"
to = ["sqs:events"]

[queues.events]
"""

STILL_PENDING = """
    SELECT id::text FROM outboxd.outbox_events
     WHERE published_at IS NULL AND id = ANY (%s::uuid[])
"""


class Daemon:
    """`outboxd run` with nothing but a relay; `name` is what the sink knows its calls by."""

    def __init__(self, name: str, supervisor: Supervisor) -> None:
        self.name = name
        self.supervisor = supervisor

    def relay(self) -> Child | None:
        """Its relay, unless that is just being replaced."""
        found = children_of(self.supervisor.pid)
        return found[0] if found else None


class World:
    """Everything around the relays. It survives whatever is done to them."""

    def __init__(
        self,
        directory: Path,
        postgres: EmbeddedPostgres,
        book: Book,
        settings: Settings,
        stack: ExitStack,
    ) -> None:
        self.directory = directory
        self.postgres = postgres
        self.dsn = postgres.dsn_of("chaos")
        self.book = book
        self._settings = settings
        self._stack = stack
        self.daemons: list[Daemon] = []
        self.started: list[Supervisor] = []

    def start_daemon(self) -> Daemon:
        """Start one; it is stopped at the end, if it lives that long."""
        name = f"daemon-{len(self.started) + 1}"
        # The SDK says it in each call (Application ID of the AWS SDKs).
        os.environ["AWS_SDK_UA_APP_ID"] = name
        log = self.directory / f"{name}.log"
        supervisor = self._stack.enter_context(
            supervising(self.directory / "outboxd.toml", self._settings, log)
        )
        self.started.append(supervisor)
        daemon = Daemon(name, supervisor)
        self.daemons.append(daemon)
        return daemon

    def kill_daemon(self, daemon: Daemon) -> None:
        """SIGKILL the supervisor; its relay is an orphan, and ends by itself."""
        with suppress(ProcessLookupError):
            os.kill(daemon.supervisor.pid, signal.SIGKILL)
        self.daemons.remove(daemon)

    def unmarked(self, accepted: set[str]) -> set[str]:
        """Those of the accepted events that the database takes for unpublished."""
        return set(self._ids(STILL_PENDING, list(accepted)))

    def stored(self) -> list[str]:
        return self._ids("SELECT id::text FROM outboxd.outbox_events")

    def pending(self) -> list[str]:
        return self._ids("SELECT id::text FROM outboxd.outbox_events WHERE published_at IS NULL")

    def dead(self) -> list[str]:
        return self._ids("SELECT id::text FROM outboxd.outbox_events WHERE dead_at IS NOT NULL")

    def owners(self) -> list[int]:
        """How many buckets each of their owners has."""
        with closing(psycopg.connect(self.dsn)) as connection:
            rows = connection.execute(
                "SELECT count(*) FROM outboxd.outbox_buckets"
                " WHERE owner IS NOT NULL GROUP BY owner ORDER BY 1"
            ).fetchall()
        return [int(count) for (count,) in rows]

    def drained(self, seconds: float) -> bool:
        """Whether nothing is left to be published within so many seconds."""
        deadline = time.monotonic() + seconds
        while self.pending():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _ids(self, query: str, *parameters: object) -> list[str]:
        with closing(psycopg.connect(self.dsn)) as connection:
            return [str(id) for (id,) in connection.execute(query.encode(), parameters).fetchall()]


@contextmanager
def world(directory: Path, dice: random.Random) -> Iterator[World]:
    """A migrated database and a sink, while the block lasts."""
    with ExitStack() as stack:
        # Durable: without synchronous_commit an immediate stop loses commits, as it may.
        postgres = stack.enter_context(embedded_postgres(durable=True))
        dsn = postgres.create_database("chaos")
        book, endpoint = stack.enter_context(sink(dice))
        use_credentials(endpoint)
        path = directory / "outboxd.toml"
        path.write_text(CONFIGURATION.format(dsn=dsn, endpoint=endpoint, lease=LEASE_SECONDS))
        Migrations(dsn, "outboxd", project_directory() / "migrations" / "outboxd").up()
        with closing(psycopg.connect(dsn, autocommit=True)) as connection:
            connection.execute(TABLE)
        yield World(directory, postgres, book, load_settings(path, os.environ), stack)
