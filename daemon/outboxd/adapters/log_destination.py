"""The daemon's own log as a destination, to see during development what is published."""

import logging
from collections.abc import Sequence

from outboxd.core.log_facts import EVENT_LOGGER
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import body_of, utf8_bytes
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import Accepted, EntryResult, Refused
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Entry, StillOurs, Withheld

log = logging.getLogger(EVENT_LOGGER)

LIMITS = PackLimits(entries=100, pack_bytes=10_000_000, entry_bytes=10_000_000)

CALL_SECONDS = 1.0


class LogDestination:
    """Writes one line for each event, at level info, with its whole envelope."""

    def __init__(self, name: str, *, cloudevents_source: str = "outboxd") -> None:
        self._name = name
        self._cloudevents_source = cloudevents_source

    @property
    def limits(self) -> PackLimits:
        return LIMITS

    @property
    def call_seconds(self) -> float:
        return CALL_SECONDS

    def open(self) -> None:
        """There is nothing to find out."""

    def prepare(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        body = body_of(event, envelope, source=self._cloudevents_source, traced=True)
        fields = {
            "destination": self._name,
            "event_id": event.id,
            "event_type": event.event_type,
            "aggregate_type": event.aggregate_type,
            "aggregate_id": event.aggregate_id,
            "body": body,
        }
        return Entry(fields, utf8_bytes(body))

    def send(self, entries: Sequence[Entry], still_ours: StillOurs) -> Sequence[EntryResult]:
        if not still_ours(CALL_SECONDS):
            raise Withheld("the lease could end before the events are logged")
        for entry in entries:
            log.info("event published", extra=entry.content)
        return [Accepted()] * len(entries)
