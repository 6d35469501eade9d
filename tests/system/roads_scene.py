"""A daemon that publishes to destinations of every kind and consumes what comes of it."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import psycopg

from outboxd import NewEvent, publish
from outboxd.adapters.eventbridge.client import events_client
from outboxd.adapters.sns.client import sns_client
from outboxd.cli.main import main
from outboxd.demo.queues import Queues
from outboxd.testing.aws import LocalAws
from tests.system.scene import APP, Scene

AGGREGATES = 20

ROADS = {
    "plain.sent": ("plain",),
    "ordered.sent": ("ordered",),
    "topic.sent": ("raw", "wrapped"),
    "bus.sent": ("bridged",),
}
"""Who handles each event type; each handler has a queue of its own name."""

CONFIGURATION = """
import_path = ["{app}"]

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
backoff_first_seconds = 0.1
metrics_interval_seconds = 0.5
crashes = 100
heartbeat_deadline_seconds = 60

[relay]
poll_max_seconds = 0.05
lease_seconds = 6
renew_seconds = 1

[[relay.routes]]
events = "plain.*"
to = ["sqs:plain"]

[[relay.routes]]
events = "ordered.*"
to = ["sqs:ordered"]

[[relay.routes]]
events = "topic.*"
to = ["sns:news"]

[[relay.routes]]
events = "bus.*"
to = ["eventbridge:shop"]

[[destinations.sns.news.subscriptions]]
queue = "raw"

[[destinations.sns.news.subscriptions]]
queue = "wrapped"
raw = false

[destinations.eventbridge.shop]
source = "shop.tests"

[[destinations.eventbridge.shop.rules]]
name = "all"
to = ["sqs:bridged"]
"""

QUEUE = """
[queues.{name}]
queue_name = "{queue_name}"
visibility_seconds = 5
wait_seconds = 1

[[queues.{name}.handlers]]
event = "{type}"
handler = "roads:arrived"
name = "{name}"
"""

ARRIVALS = """
    CREATE TABLE public.arrivals (
        n bigint GENERATED ALWAYS AS IDENTITY,
        event_id uuid, handler text, aggregate text, number integer
    )
"""


class RoadsScene(Scene):
    """Real processes, a real database, a local AWS with queues, a topic and a bus."""

    def __init__(self, dsn: str, endpoint: str, directory: Path) -> None:
        super().__init__(dsn, endpoint, directory)
        self.aws = LocalAws(endpoint)
        self._numbers = count()
        queues = "".join(
            QUEUE.format(
                name=name, type=type, queue_name="ordered.fifo" if name == "ordered" else name
            )
            for type, names in ROADS.items()
            for name in names
        )
        text = CONFIGURATION.format(app=APP, dsn=dsn, endpoint=endpoint) + queues
        self.configuration.write_text(text)
        with self.database() as connection:
            connection.execute(ARRIVALS)
        self.provision()
        self._queues = Queues(self.settings)

    def provision(self) -> None:
        """Create what is missing of queues, topic, subscriptions, bus and rule."""
        assert main(["provision", "--yes", "--config", str(self.configuration)]) == 0

    def delete_topic(self) -> None:
        with closing(sns_client(self.settings.aws, connections=1)) as sns:
            (topic,) = sns.list_topics()["Topics"]
            sns.delete_topic(TopicArn=topic["TopicArn"])

    def delete_bus(self) -> None:
        with closing(events_client(self.settings.aws, connections=1)) as events:
            found = events.list_targets_by_rule(Rule="all", EventBusName="shop")["Targets"]
            ids = [target["Id"] for target in found]
            events.remove_targets(Rule="all", EventBusName="shop", Ids=ids)
            events.delete_rule(Name="all", EventBusName="shop")
            events.delete_event_bus(Name="shop")

    @contextmanager
    def load(self, per_second: float) -> Iterator[None]:
        """Events of each type, over all aggregates, at a steady pace while the block lasts."""
        stopping = threading.Event()

        def produce() -> None:
            with psycopg.connect(self.dsn) as connection:
                while not stopping.wait(1 / per_second):
                    self._publish_one_of_each(connection)

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def _publish_one_of_each(self, connection: psycopg.Connection) -> None:
        number = next(self._numbers)
        for type in ROADS:
            aggregate = f"aggregate-{number % AGGREGATES}"
            # Each type has aggregates of its own: an event that waits holds up those of its own
            # aggregate on every road.
            publish(connection, NewEvent(type, type, aggregate, {"number": number}))
        connection.commit()

    def ask(self, query: str, *parameters: object) -> list[tuple[object, ...]]:
        with self.database() as connection:
            return connection.execute(query.encode(), parameters).fetchall()

    def pending(self, type: str = "%") -> int:
        with self.database() as connection:
            row = connection.execute(
                "SELECT count(*) FROM outboxd.outbox_events"
                " WHERE published_at IS NULL AND event_type LIKE %s",
                [type],
            ).fetchone()
        assert row is not None
        return int(row[0])

    def drained(self) -> bool:
        """Nothing waits in the outbox, nothing in a queue."""
        return self.pending() == 0 and not any(
            depth.visible + depth.in_flight + depth.delayed
            for depth in self._queues.depths().values()
        )

    def stored(self, type: str, lost_from: float = 0, lost_until: float = 0) -> list[str]:
        """The events of a type but for those that were marked as published in that time."""
        rows = self.ask(
            "SELECT id::text FROM outboxd.outbox_events WHERE event_type = %s"
            " AND NOT published_at BETWEEN to_timestamp(%s) AND to_timestamp(%s) ORDER BY id",
            type,
            lost_from,
            lost_until,
        )
        return [str(id) for (id,) in rows]

    def arrived(self, handler: str) -> list[str]:
        """The ids of the events that took effect, as often as they did, sorted."""
        rows = self.ask(
            "SELECT event_id::text FROM public.arrivals WHERE handler = %s ORDER BY event_id",
            handler,
        )
        return [str(id) for (id,) in rows]

    def inversions(self, handler: str) -> int:
        """How often an event of an aggregate arrived after a later one."""
        rows = self.ask(
            "SELECT count(*) FILTER (WHERE number < before) FROM ("
            "  SELECT number, lag(number) OVER (PARTITION BY aggregate ORDER BY n) AS before"
            "    FROM public.arrivals WHERE handler = %s) AS pairs",
            handler,
        )
        return int(str(rows[0][0]))

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
        return float(str(delay))


def now() -> float:
    """The moment as PostgreSQL, on this host, sees it."""
    return time.time()
