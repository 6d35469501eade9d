"""The whole daemon for one test: real processes, a real database, a local AWS."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from outboxd import NewEvent, publish
from outboxd.adapters.configuration import load_settings
from outboxd.adapters.sqs.client import sqs_client
from outboxd.cli.main import main
from outboxd.core.clock import boottime
from outboxd.core.settings import Settings
from outboxd.demo.http import get
from outboxd.demo.queues import Queues
from outboxd.demo.supervisor import Supervisor, supervising

APP = Path(__file__).parent / "app"

CONFIGURATION = """
import_path = ["{app}"]

[database]
url = "{dsn}"

[aws]
endpoint_url = "{endpoint}"

[http]
port = {port}

[logging]
format = "json"

[supervisor]
grace_seconds = {grace}
escalation_seconds = 1
backoff_first_seconds = 0.1
metrics_interval_seconds = 0.5
crashes = 100

[relay]
poll_max_seconds = 0.1

[[relay.routes]]
events = "*"
to = ["sqs:work"]

[queues.work]
queue_name = "{queue_name}"
concurrency = {concurrency}
visibility_seconds = {visibility}
wait_seconds = 1
max_attempts = {max_attempts}
backoff = {{ first_seconds = 0.1, cap_seconds = 1 }}
{handlers}
"""

HANDLER = """
[[queues.work.handlers]]
event = "{event}"
handler = "scenes:{function}"
name = "{function}"
inbox = "{inbox}"
timeout_seconds = {timeout}
"""


def handler(function: str, event: str = "", inbox: str = "transaction", timeout: float = 30) -> str:
    """A handler's table; it handles the event type of its own name unless another is given."""
    return HANDLER.format(
        event=event or f"{function}.wanted", function=function, inbox=inbox, timeout=timeout
    )


class Scene:
    """What a test may do to the daemon, and what it may see of it."""

    def __init__(self, dsn: str, endpoint: str, directory: Path) -> None:
        self.dsn = dsn
        self.endpoint = endpoint
        self.directory = directory
        self.address = ""
        self._runs = 0

    def configure(
        self,
        *handlers: str,
        visibility: int = 30,
        concurrency: int = 10,
        grace: float = 8,
        port: int = 0,
        fifo: bool = False,
        max_attempts: int = 3,
    ) -> Settings:
        """Write the configuration, create the queues and the table of effects."""
        path = self.configuration
        path.write_text(
            CONFIGURATION.format(
                app=APP,
                dsn=self.dsn,
                endpoint=self.endpoint,
                port=port,
                grace=grace,
                concurrency=concurrency,
                visibility=visibility,
                queue_name="work.fifo" if fifo else "work",
                max_attempts=max_attempts,
                handlers="".join(handlers),
            )
        )
        assert main(["provision", "--config", str(path)]) == 0, "queues cannot be provisioned"
        with self.database() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS public.effects ("
                "  seq bigint GENERATED ALWAYS AS IDENTITY, event_id uuid, handler text)"
            )
        return self.settings

    @property
    def configuration(self) -> Path:
        return self.directory / "outboxd.toml"

    @property
    def settings(self) -> Settings:
        return load_settings(self.configuration, os.environ)

    @contextmanager
    def daemon(self) -> Iterator[Supervisor]:
        """The daemon, ready; it is stopped at the end unless the test has done so."""
        self._runs += 1
        log = self.directory / f"daemon-{self._runs}.log"
        with supervising(self.configuration, self.settings, log) as supervisor:
            supervisor.await_ready(lambda: False)
            self.address = supervisor.address
            yield supervisor

    @contextmanager
    def database(self) -> Iterator[psycopg.Connection]:
        with closing(psycopg.connect(self.dsn, autocommit=True)) as connection:
            yield connection

    def publish(
        self, type: str, count: int = 1, aggregate: str | None = None, **payload: Any
    ) -> list[str]:
        """Commit events, each of an aggregate of its own unless one is named; their ids."""
        with psycopg.connect(self.dsn) as connection:
            return [
                str(
                    publish(
                        connection,
                        NewEvent(
                            type=type,
                            aggregate_type="test",
                            aggregate_id=aggregate or f"{type}-{number}-{time.time_ns()}",
                            payload=payload,
                        ),
                    )
                )
                for number in range(count)
            ]

    def send(self, body: str) -> None:
        """Put a message into the queue past the outbox."""
        client = sqs_client(self.settings.aws, connections=1)
        with closing(client):
            url = client.get_queue_url(QueueName=self.settings.sqs_queue_name("work"))["QueueUrl"]
            client.send_message(QueueUrl=url, MessageBody=body)

    def effects(self, handler: str) -> list[str]:
        """The ids of the events that took effect, as often as they did, in the order of that."""
        # Not the table's own order: sessions that insert beside each other fill different pages.
        query = "SELECT event_id FROM public.effects WHERE handler = %s ORDER BY seq"
        with self.database() as connection:
            rows = connection.execute(query, [handler]).fetchall()
        return [str(row[0]) for row in rows]

    def visible(self) -> int:
        return Queues(self.settings).depths()["work"].visible

    def messages_left(self) -> int:
        depth = Queues(self.settings).depths()["work"]
        return depth.visible + depth.in_flight + depth.delayed

    def in_flight(self) -> int:
        return Queues(self.settings).depths()["work"].in_flight

    def letters(self) -> list[dict[str, Any]]:
        """The dead letters, each as what its `outboxd` attribute says and its body."""
        client = sqs_client(self.settings.aws, connections=1)
        found = []
        with closing(client):
            url = client.get_queue_url(QueueName=self.settings.dead_letter_name("work"))["QueueUrl"]
            while messages := client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
            ).get("Messages"):
                for message in messages:
                    told = json.loads(message["MessageAttributes"]["outboxd"]["StringValue"])
                    found.append({**told, "body": message["Body"]})
        return found

    def attempts(self, without: str = "") -> int:
        """All failed attempts that are on record, but for those of the handler `without`."""
        with self.database() as connection:
            row = connection.execute(
                "SELECT coalesce(sum(attempts), 0) FROM outboxd.handler_failures"
                " WHERE handler <> %s",
                [without],
            ).fetchone()
        assert row is not None
        return int(row[0])

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        from prometheus_client.parser import text_string_to_metric_families

        families = text_string_to_metric_families(self.exposition())
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def exposition(self) -> str:
        answer = get(self.address, "/metrics")
        assert answer is not None, "nobody answers /metrics"
        assert answer[0] == 200
        return answer[1]


def eventually(holds: Callable[[], bool], seconds: float = 30) -> None:
    """Return once `holds`; fail the test when it does not within the bound."""
    deadline = boottime() + seconds
    while not holds():
        assert boottime() < deadline, f"not within {seconds} s"
        time.sleep(0.05)


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] != "Z"
    return False


def encoded(**event: Any) -> str:
    return msgspec.json.encode(event).decode()
