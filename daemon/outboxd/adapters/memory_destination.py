"""A list in this process as a destination, for tests that run a relay."""

import threading
from collections import deque
from collections.abc import Sequence

import msgspec

from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import attributes_of, body_of, utf8_bytes
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import Accepted, EntryResult, Refused
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Entry, StillOurs, Withheld

LIMITS = PackLimits(entries=100, pack_bytes=10_000_000, entry_bytes=10_000_000)

CALL_SECONDS = 1.0

KEPT = 10_000
"""How many events are kept, the newest ones: a daemon that is left alone must not fill up."""


class Delivered(msgspec.Struct, frozen=True):
    """An event as a queue would have got it."""

    id: str
    type: str
    aggregate_type: str
    aggregate_id: str
    body: str
    attributes: dict[str, str]


class MemoryDestination:
    """Keeps what is published, in the order of its acceptance."""

    def __init__(self, *, cloudevents_source: str = "outboxd") -> None:
        self._cloudevents_source = cloudevents_source
        self._kept: deque[Delivered] = deque(maxlen=KEPT)
        self._keeping = threading.Lock()

    @property
    def delivered(self) -> list[Delivered]:
        """What was published so far, first to last."""
        with self._keeping:
            return list(self._kept)

    @property
    def limits(self) -> PackLimits:
        return LIMITS

    @property
    def call_seconds(self) -> float:
        return CALL_SECONDS

    def open(self) -> None:
        """There is nothing to find out."""

    def prepare(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        body = body_of(event, envelope, source=self._cloudevents_source)
        delivered = Delivered(
            event.id,
            event.event_type,
            event.aggregate_type,
            event.aggregate_id,
            body,
            attributes_of(event, envelope),
        )
        return Entry(delivered, utf8_bytes(body))

    def send(self, entries: Sequence[Entry], still_ours: StillOurs) -> Sequence[EntryResult]:
        if not still_ours(CALL_SECONDS):
            raise Withheld("the lease could end before the events are kept")
        with self._keeping:
            self._kept.extend(entry.content for entry in entries)
        return [Accepted()] * len(entries)
