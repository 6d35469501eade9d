"""A daemon with nothing but a relay and two queues, and what may be done to it."""

import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from outboxd import NewEvent, publish
from outboxd.adapters.configuration import load_settings
from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.settings import Settings
from outboxd.demo.processes import children_of
from outboxd.demo.queues import Queues
from outboxd.demo.supervisor import Supervisor, supervising
from outboxd.testing.aws import LocalAws

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

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
grace_seconds = 8
escalation_seconds = 1
heartbeat_deadline_seconds = 60

[relay]
poll_max_seconds = 0.05
lease_seconds = 6
renew_seconds = 1

[[relay.routes]]
events = "order.*"
to = ["sqs:orders"]

[[relay.routes]]
events = "lead.*"
to = ["sqs:leads"]

[queues.orders]
[queues.leads]
"""


class RelayScene:
    """Real processes, a real database, a local AWS."""

    def __init__(self, dsn: str, endpoint: str, directory: Path) -> None:
        self.dsn = dsn
        self.aws = LocalAws(endpoint)
        self.directory = directory
        self._runs = 0
        self.use(dsn)
        Queues(self.settings).create()

    def use(self, dsn: str) -> None:
        """Have the next daemon work on this database."""
        self.dsn = dsn
        self._configuration.write_text(
            CONFIGURATION.format(dsn=dsn, endpoint=self.aws.endpoint_url)
        )

    @property
    def settings(self) -> Settings:
        return load_settings(self._configuration, os.environ)

    @property
    def _configuration(self) -> Path:
        return self.directory / "outboxd.toml"

    @contextmanager
    def daemon(self) -> Iterator[Supervisor]:
        """The daemon, ready; it is stopped at the end, if it lives that long."""
        self._runs += 1
        log = self.directory / f"daemon-{self._runs}.log"
        with supervising(self._configuration, self.settings, log) as supervisor:
            supervisor.await_ready(lambda: False)
            yield supervisor

    @contextmanager
    def sqs(self) -> Iterator["SQSClient"]:
        with closing(sqs_client(self.settings.aws, connections=1)) as client:
            yield client

    @contextmanager
    def database(self) -> Iterator[psycopg.Connection]:
        with closing(psycopg.connect(self.dsn, autocommit=True)) as connection:
            yield connection

    def ask(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self.database() as connection:
            return connection.execute(query.encode(), parameters).fetchall()

    def publish(self, type: str, aggregates: Sequence[str]) -> None:
        """Commit an event for each aggregate."""
        with psycopg.connect(self.dsn) as connection:
            for aggregate in aggregates:
                publish(connection, NewEvent(type, type, aggregate, {}))

    def pending(self) -> int:
        ((count,),) = self.ask(
            "SELECT count(*) FROM outboxd.outbox_events WHERE published_at IS NULL"
        )
        return int(count)

    def stored(self, type: str) -> list[str]:
        rows = self.ask(
            "SELECT id::text FROM outboxd.outbox_events WHERE event_type = %s ORDER BY id", type
        )
        return [id for (id,) in rows]

    def published_since(self, moment: float) -> list[str]:
        """The ids of the orders that were marked as published later (time.time())."""
        rows = self.ask(
            "SELECT id::text FROM outboxd.outbox_events"
            " WHERE event_type = 'order.placed' AND published_at > to_timestamp(%s)",
            moment,
        )
        return [id for (id,) in rows]

    def messages(self, queue: str) -> list[str]:
        """Take every message out of the queue; the ids of their events, sorted."""
        found = []
        with self.sqs() as client:
            url = client.get_queue_url(QueueName=queue)["QueueUrl"]
            while messages := client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0
            ).get("Messages"):
                found += [json.loads(message["Body"])["id"] for message in messages]
        return sorted(found)

    @contextmanager
    def load(self, per_second: float) -> Iterator[None]:
        """Both kinds of events, committed at a steady pace while the block lasts."""
        stopping = threading.Event()

        def produce() -> None:
            number = 0
            while not stopping.wait(1 / per_second):
                number += 1
                self.publish("order.placed", [f"order-{number % 50}"])
                self.publish("lead.created", [f"lead-{number % 50}"])

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def median_delay(self, type: str, since: float, until: float) -> float:
        """How long the events inserted between two moments (time.time()) took to be published."""
        ((delay,),) = self.ask(
            "SELECT percentile_cont(0.5) WITHIN GROUP ("
            "           ORDER BY extract(epoch FROM published_at - occurred_at)::float8)"
            "  FROM outboxd.outbox_events"
            " WHERE event_type = %s AND occurred_at BETWEEN to_timestamp(%s) AND to_timestamp(%s)",
            type,
            since,
            until,
        )
        return float(delay)


def relay_of(daemon: Supervisor) -> int:
    """The process id of its relay."""
    (relay,) = children_of(daemon.pid)
    return relay.pid


def now() -> float:
    """The moment as PostgreSQL, on this host, sees it."""
    return time.time()
