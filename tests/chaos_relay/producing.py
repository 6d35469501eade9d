"""Producers that lock the rows of their aggregates, dawdle, and insert events meanwhile.

Between a lock and its insert, and between the insert and the commit, others take numbers and
commit: the order of commits is that of the numbers within an aggregate only.
"""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from uuid import UUID

import psycopg

from outboxd import NewEvent, publish

AGGREGATES = 200
PRODUCERS = 6
ROLLBACKS = 0.05
LONGEST_DAWDLE_SECONDS = 0.01
AGAIN_SECONDS = 0.2

TABLE = f"""
    CREATE TABLE public.shelf (id integer PRIMARY KEY, position integer NOT NULL);
    INSERT INTO public.shelf SELECT id, 0 FROM generate_series(0, {AGGREGATES - 1}) AS id;
"""


class Producer(threading.Thread):
    """Commits two events of two aggregates at a time, for as long as it may."""

    def __init__(self, dsn: str, name: str, seed: float, may_go: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self._dsn = dsn
        self._dice = random.Random(seed)
        self._may_go = may_go
        self._stopping = threading.Event()
        self.resting = threading.Event()
        """Set while it has no transaction open because it may not go."""
        self.committed: list[UUID] = []
        """Ids of events whose commit was confirmed: what nothing may lose from then on."""

    def stop(self) -> None:
        """End after the transaction in hand."""
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                with closing(psycopg.connect(self._dsn)) as connection:
                    while not self._stopping.is_set():
                        self._store_two(connection)
            except psycopg.Error:
                self._stopping.wait(AGAIN_SECONDS)

    def _store_two(self, connection: psycopg.Connection) -> None:
        if not self._may_go.is_set():
            self.resting.set()
            self._stopping.wait(AGAIN_SECONDS)
            return
        self.resting.clear()
        numbers = sorted(self._dice.sample(range(AGGREGATES), 2))
        undone = self._dice.random() < ROLLBACKS
        with connection.transaction(force_rollback=undone):
            stored = [self._store(connection, number) for number in numbers]
            self._dawdle()
        if not undone:
            self.committed += stored

    def _store(self, connection: psycopg.Connection, number: int) -> UUID:
        ((position,),) = connection.execute(
            "UPDATE public.shelf SET position = position + 1 WHERE id = %s RETURNING position",
            [number],
        ).fetchall()
        self._dawdle()
        payload = {"position": position}
        return publish(connection, NewEvent("moved", "shelf", f"shelf-{number}", payload))

    def _dawdle(self) -> None:
        time.sleep(self._dice.random() * LONGEST_DAWDLE_SECONDS)


class Producers:
    """All of them."""

    def __init__(self, dsn: str, dice: random.Random) -> None:
        self._may_go = threading.Event()
        self._all = [
            Producer(dsn, f"producer-{number}", dice.random(), self._may_go)
            for number in range(PRODUCERS)
        ]

    @property
    def committed(self) -> set[str]:
        return {str(id) for producer in self._all for id in producer.committed}

    def go(self) -> None:
        """Work until told to rest."""
        for producer in self._all:
            producer.resting.clear()
        self._may_go.set()

    def rest(self) -> None:
        """Return once nobody has a transaction open."""
        self._may_go.clear()
        for producer in self._all:
            assert producer.resting.wait(30), f"{producer.name} does not come to rest"

    def start(self) -> None:
        for producer in self._all:
            producer.start()

    def end(self) -> None:
        for producer in self._all:
            producer.stop()
        for producer in self._all:
            producer.join()


@contextmanager
def producing(dsn: str, dice: random.Random) -> Iterator[Producers]:
    """Producers, at rest at first, while the block lasts."""
    producers = Producers(dsn, dice)
    producers.start()
    try:
        yield producers
    finally:
        producers.end()
