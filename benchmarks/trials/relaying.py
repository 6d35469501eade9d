"""What relays cost per event while they publish, with a backlog that is kept as long as it is."""

import time
from collections.abc import Sequence
from typing import Any, Self

import psycopg

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figures
from benchmarks.filling import fill_outbox, insert_events
from benchmarks.local_sqs import LocalSqs
from benchmarks.place import QUEUE, Place
from benchmarks.processes import Processes
from outboxd.demo.supervisor import Supervisor

RELAY_CPU = "relay CPU ms per 1,000"
DATABASE_CPU = "PG CPU ms per 1,000"
RATE = "events a second"

LOOK_SECONDS = 0.01
MOST_AT_ONCE = 1_000
"""Events that are added at once."""

LIMIT_SECONDS = 60.0


class Backlog:
    """So many events wait, always: what is sent is replaced by new events at the end."""

    def __init__(self, place: Place, size: int) -> None:
        fill_outbox(place.dsn, size)
        self._inserted = self._size = size
        self._place = place
        self._view = LocalSqs(place.endpoint, QUEUE)
        self._connection: psycopg.Connection[Any] = psycopg.connect(place.dsn, autocommit=True)
        # What the filling left to be written would else be written while relays are measured.
        self._connection.execute("CHECKPOINT")

    def last(self, seconds: float, relays: Sequence[Supervisor]) -> None:
        """Have them work for so long."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._refill(relays)

    def cost(self, events: int, relays: Sequence[Supervisor]) -> Figures:
        """What these relays, and PostgreSQL without this filler, take for so many more events."""
        ours, servers, at, before = *self._cpu(relays), time.monotonic(), self._sent()
        deadline = at + LIMIT_SECONDS
        while (sent := self._sent() - before) < events:
            self._refill(relays)
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{events} events were not sent in {LIMIT_SECONDS:g} s")
        seconds = time.monotonic() - at
        ours_after, servers_after = self._cpu(relays)
        return {
            RELAY_CPU: (ours_after - ours) * 1e6 / sent,
            DATABASE_CPU: (servers_after - servers) * 1e6 / sent,
            RATE: sent / seconds,
        }

    def _refill(self, relays: Sequence[Supervisor]) -> None:
        missing = self._size - (self._inserted - self._sent())
        if missing >= min(MOST_AT_ONCE, self._size) // 4:
            insert_events(self._connection, missing)
            self._inserted += missing
        else:
            time.sleep(LOOK_SECONDS)
        for relay in relays:
            if (words := relay.last_words()) is not None:
                raise BenchmarkError(words)

    def _sent(self) -> int:
        return self._view.depth().total

    def _cpu(self, relays: Sequence[Supervisor]) -> tuple[float, float]:
        processes = Processes()
        database = processes.cpu_seconds(self._place.database_pid)
        # The backend of the filler is a producer's.
        database.pop(self._connection.info.backend_pid, None)
        ours = (sum(processes.cpu_seconds(relay.pid).values()) for relay in relays)
        return sum(ours), sum(database.values())

    def drain(self) -> None:
        """Wait until nothing is left."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while self._sent() < self._inserted:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"the backlog was not sent in {LIMIT_SECONDS:g} s")
            time.sleep(LOOK_SECONDS)

    def __enter__(self) -> Self:
        self._view.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._view.__exit__(*error)
        self._connection.close()
