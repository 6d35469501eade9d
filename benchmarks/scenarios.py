"""How one sees how far the work is, and that all of it was done, and done once."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import closing
from copy import copy
from typing import ClassVar, Self

import psycopg

from benchmarks.entrants import Entrant
from benchmarks.errors import BenchmarkError
from benchmarks.local_sqs import LocalSqs, QueueView
from benchmarks.measuring import Phase, Work
from benchmarks.place import Place
from benchmarks.server import ServerKind, localaws


class Scenario(ABC):
    """A benchmark, and who takes part in it."""

    family: ClassVar[str]
    """What `--only` selects it by."""

    events: ClassVar[int]
    """Of each run, unless others are asked for."""

    def __init__(
        self,
        name: str,
        entrants: Sequence[Entrant],
        *,
        server: ServerKind = localaws,
        latency_seconds: float = 0.0,
    ) -> None:
        self.name = name
        self.entrants = tuple(entrants)
        self.server = server
        self.latency_seconds = latency_seconds

    def narrowed(self, subjects: Collection[str]) -> Self:
        """The same with no others than these subjects; all, if none is named."""
        chosen = copy(self)
        chosen.entrants = tuple(e for e in self.entrants if not subjects or e.name in subjects)
        return chosen

    def share(self, entrant: Entrant, events: int | None) -> int:
        """How many events one run of that entrant has, if so many are asked for."""
        return min(self.events if events is None else events, entrant.at_most)

    @abstractmethod
    def prepare(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> None:
        """Put the work there."""

    @abstractmethod
    def work(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> Work:
        """What tells how far it is."""

    @abstractmethod
    def check(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> None:
        """Raise BenchmarkError unless all of it was done, and done once."""


class Relay(Scenario):
    """Committed events, from the outbox into one queue."""

    family = "relay"
    events = 50_000

    def prepare(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> None:
        entrant.fill(place, count)
        if self.latency_seconds > 0:
            assert isinstance(view, LocalSqs)
            view.slow(self.latency_seconds)

    def work(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> Work:
        return _Relaying(place.dsn, entrant.pending, count, view)

    def check(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> None:
        if (sent := view.depth().total) != count:
            raise BenchmarkError(f"{sent} messages were sent for {count} events")


class Consume(Scenario):
    """Messages that are in the queue already, for a handler that does nothing."""

    family = "consume"
    events = 20_000

    def prepare(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> None:
        view.hold()
        entrant.fill(place, count)
        if (found := view.depth().total) != count:
            raise BenchmarkError(f"{found} messages were enqueued instead of {count}")

    def work(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> Work:
        return _Consuming(count, view)

    def check(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> None:
        """Dead letters are in another queue."""


class Effect(Consume):
    """The same for a handler with one insert, in the transaction that marks the message."""

    family = "effect"
    events = 5_000  # each is a transaction that waits for the disk

    def check(self, entrant: Entrant, place: Place, count: int, view: QueueView) -> None:
        effects = _one(place.dsn, "SELECT count(*) FROM public.effects")
        if effects != count:
            raise BenchmarkError(f"{effects} effects were seen of {count} messages")


class _Relaying:
    held = False

    def __init__(self, dsn: str, pending: str, count: int, view: QueueView) -> None:
        self._dsn = dsn
        self._pending = pending
        self._count = count
        self._view = view

    def phase(self) -> Phase:
        sent = self._view.depth().total
        if sent == 0:
            return Phase.WAITING
        # The database is asked only at the end, so that asking costs the work nothing.
        done = sent >= self._count and not _one(self._dsn, self._pending)
        return Phase.DONE if done else Phase.UNDER_WAY


class _Consuming:
    def __init__(self, count: int, view: QueueView) -> None:
        self._count = count
        self._view = view
        self.held = view.depth().delayed > 0

    def phase(self) -> Phase:
        depth = self._view.depth()
        if depth.visible == self._count:
            return Phase.WAITING
        return Phase.UNDER_WAY if depth.total else Phase.DONE


def _one(dsn: str, query: str) -> object:
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]
