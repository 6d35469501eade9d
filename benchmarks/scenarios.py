"""What is measured: the work, how it is put there, and how one sees that it is done."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing

import psycopg

from benchmarks.errors import BenchmarkError
from benchmarks.filling import fill_outbox, fill_queue
from benchmarks.local_sqs import LocalSqs
from benchmarks.measuring import Phase
from benchmarks.place import PROJECT, QUEUE, Place

HEAD = """
import_path = ["{project}"]

[aws]
endpoint_url = "{{endpoint}}"

[http]
port = 0
"""

DATABASE = """
[database]
url = "{{dsn}}"
"""

ROUTE = """
[[relay.routes]]
events = "*"
to = ["sqs:{queue}"]

[queues.{queue}]  # without handlers: nobody consumes it
"""

HANDLER = """
[queues.{queue}]
wait_seconds = 1  # a stop waits for the last, empty poll; while there is work no poll is empty

[[queues.{queue}.handlers]]
event = "*"
handler = "benchmarks.handlers:{function}"
name = "{function}"
inbox = "{inbox}"
"""

PENDING = """
    SELECT EXISTS (
        SELECT 1 FROM outboxd.outbox_events WHERE published_at IS NULL AND dead_at IS NULL
    )
"""


class Scenario(ABC):
    """Everything that is not set in `configuration` has its default, as for any user."""

    name: str
    family: str
    """What `--only` selects it by."""

    configuration: str

    fraction: int = 1
    """How many times fewer events it gets than the others."""

    def share(self, events: int) -> int:
        """How many events one run of it has."""
        return max(1, events // self.fraction)

    @abstractmethod
    def fill(self, place: Place, count: int) -> None:
        """Put the work there."""

    @abstractmethod
    def phases(self, place: Place, count: int, sqs: LocalSqs) -> Callable[[], Phase]:
        """What tells how far the work is."""

    @abstractmethod
    def check(self, place: Place, count: int, sqs: LocalSqs) -> None:
        """Raise BenchmarkError unless all of it was done, and done once."""


class Relay(Scenario):
    """Committed events, from the outbox into one queue."""

    name = family = "relay"
    configuration = (HEAD + DATABASE + ROUTE).format(project=PROJECT, queue=QUEUE)

    def fill(self, place: Place, count: int) -> None:
        fill_outbox(place.dsn, count)

    def phases(self, place: Place, count: int, sqs: LocalSqs) -> Callable[[], Phase]:
        def phase() -> Phase:
            sent = sqs.depth().total
            if sent == 0:
                return Phase.WAITING
            # The database is asked only at the end, so that asking costs the work nothing.
            done = sent >= count and not _one(place.dsn, PENDING)
            return Phase.DONE if done else Phase.UNDER_WAY

        return phase

    def check(self, place: Place, count: int, sqs: LocalSqs) -> None:
        if (sent := sqs.depth().total) != count:
            raise BenchmarkError(f"{sent} messages were sent for {count} events")


class Consume(Scenario):
    """Messages that are in the queue already, for a handler that does nothing."""

    name = family = "consume"
    configuration = (HEAD + HANDLER).format(
        project=PROJECT, queue=QUEUE, function="ignore", inbox="off"
    )

    def fill(self, place: Place, count: int) -> None:
        fill_queue(place.endpoint, QUEUE, count)

    def phases(self, place: Place, count: int, sqs: LocalSqs) -> Callable[[], Phase]:
        def phase() -> Phase:
            depth = sqs.depth()
            if depth.visible == count:
                return Phase.WAITING
            return Phase.UNDER_WAY if depth.total else Phase.DONE

        return phase

    def check(self, place: Place, count: int, sqs: LocalSqs) -> None:
        """Dead letters would show as messages that the daemon never counts as processed."""


class ConsumeOnce(Consume):
    """The same for a handler with one insert in an inbox transaction."""

    name = "consume, inbox"
    fraction = 4  # each is a transaction that waits for the disk
    configuration = (HEAD + DATABASE + HANDLER).format(
        project=PROJECT, queue=QUEUE, function="effect", inbox="transaction"
    )

    def check(self, place: Place, count: int, sqs: LocalSqs) -> None:
        effects = _one(place.dsn, "SELECT count(*) FROM public.effects")
        if effects != count:
            raise BenchmarkError(f"{effects} effects were seen of {count} messages")


def _one(dsn: str, query: str) -> object:
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]


SCENARIOS: tuple[Scenario, ...] = (Relay(), Consume(), ConsumeOnce())
