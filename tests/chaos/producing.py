"""The producer: commits events at a steady pace, whatever happens to PostgreSQL."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from uuid import UUID

import psycopg

from outboxd import publish
from tests.chaos.workload import Piece, Workload

KNOWN = "SELECT 1 FROM outboxd.outbox_events WHERE id = %s"
AGAIN_SECONDS = 0.2


class Producer(threading.Thread):
    """Publishes every piece of a workload, one after the other: an aggregate has one writer."""

    def __init__(
        self, dsn: str, load: Workload, seconds: float, send_malformed: Callable[[str], None]
    ) -> None:
        super().__init__(name="producer", daemon=True)
        self._dsn = dsn
        self._load = load
        self._seconds = seconds
        self._send_malformed = send_malformed
        self._stopping = threading.Event()
        self.committed: list[UUID] = []
        """Ids of events whose commit was confirmed: what nothing may lose from then on."""
        self.done = False

    def stop(self) -> None:
        """End after the piece in hand."""
        self._stopping.set()

    def run(self) -> None:
        pieces, malformed = list(self._load.pieces), list(self._load.malformed)
        began_at = time.monotonic()
        bodies_sent = 0
        for number, piece in enumerate(self._connected(pieces)):
            due = (number + 1) / len(pieces)
            while bodies_sent < due * len(malformed):
                self._send_malformed(malformed[bodies_sent])
                bodies_sent += 1
            if self._stopping.wait(max(0.0, began_at + due * self._seconds - time.monotonic())):
                return
            self.committed.append(piece.event.id)
        self.done = True

    def _connected(self, pieces: list[Piece]) -> Iterator[Piece]:
        """Each piece once it is committed."""
        left = list(reversed(pieces))
        while left and not self._stopping.is_set():
            try:
                with closing(psycopg.connect(self._dsn)) as connection:
                    while left:
                        self._commit(connection, left[-1])
                        yield left.pop()
            except psycopg.Error:
                self._stopping.wait(AGAIN_SECONDS)

    def _commit(self, connection: psycopg.Connection, piece: Piece) -> None:
        with connection.transaction():
            # It may be there: of the last commit before an outage nobody can know.
            if connection.execute(KNOWN, [piece.event.id]).fetchone() is None:
                publish(connection, piece.event)


@contextmanager
def producing(
    dsn: str, load: Workload, seconds: float, send_malformed: Callable[[str], None]
) -> Iterator[Producer]:
    """A producer at work while the block lasts."""
    producer = Producer(dsn, load, seconds, send_malformed)
    producer.start()
    try:
        yield producer
    finally:
        producer.stop()
        producer.join()
