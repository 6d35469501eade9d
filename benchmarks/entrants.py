"""Who takes part in a benchmark: how its work is put there, and how it is started."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from benchmarks import subjects
from benchmarks.configurations import RELAY
from benchmarks.filling import fill_queue
from benchmarks.peers.peer import Peer
from benchmarks.place import QUEUE, Place
from benchmarks.subjects import Subject

PENDING = """
    SELECT EXISTS (
        SELECT 1 FROM outboxd.outbox_events WHERE published_at IS NULL AND dead_at IS NULL
    )
"""


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    """One subject of a benchmark.

    `at_most` keeps the runs of the slow ones short: what is compared is per event. `pending` asks a
    relay's own table. `configuration` is the daemon's; for others it only says which queues there
    are. `peer` has to be installed first.
    """

    name: str
    fill: Callable[[Place, int], None]
    start: Callable[[Place], AbstractContextManager[Subject]]
    configuration: str = RELAY
    at_most: int = sys.maxsize
    pending: str = PENDING
    peer: Peer | None = None


def outboxd(
    configuration: str,
    fill: Callable[[Place, int], None],
    *,
    name: str = "outboxd",
    at_most: int = sys.maxsize,
) -> Entrant:
    """The daemon with this configuration."""
    return Entrant(
        name=name,
        fill=fill,
        start=lambda place: subjects.daemon(place.configuration, place.settings),
        configuration=configuration,
        at_most=at_most,
    )


def floor(
    kind: str,
    fill: Callable[[Place, int], None],
    *,
    threads: int = 1,
    name: str = "floor",
    at_most: int = sys.maxsize,
) -> Entrant:
    """The floor of that kind."""
    return Entrant(
        name=name,
        fill=fill,
        start=lambda place: subjects.floor(kind, place, str(threads)),
        at_most=at_most,
    )


def peer(one: Peer, *, at_most: int | None = None, pending: str = PENDING) -> Entrant:
    """A peer; without a producer of its own it is given the relay's messages."""
    return Entrant(
        name=one.name,
        fill=one.fill if one.producer else queue_of_events,
        start=one.start,
        at_most=one.at_most if at_most is None else at_most,
        pending=pending,
        peer=one,
    )


def queue_of_events(place: Place, count: int) -> None:
    """Messages as the relay of outboxd sends them."""
    fill_queue(place.endpoint, QUEUE, count)
