"""What queues, topics and buses have in common as destinations of the relay.

Found before the first call and again after an outage; sent to with a last look at the lease; and
whatever the SDK raises told apart into a pack that was refused and a destination that is away.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from botocore.client import BaseClient
from botocore.exceptions import BotoCoreError, ClientError

from outboxd.adapters.aws.last_look import last_look, looking_before_sending
from outboxd.adapters.aws.outages import AWS_ERRORS, code_of, outage
from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import oversize
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import EntryResult, Refused
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Entry, PackRefused, StillOurs, Withheld


class Found(NamedTuple):
    """What was found out about a queue, topic or bus."""

    address: str
    """What its calls name it by: a URL, an ARN or a name."""
    limits: PackLimits


class AwsDestination(ABC):
    """One queue, topic or bus; says everything of the port ports.destination.Destination, of which
    a service's own class adds how it is found, what its entries look like, and how it is called."""

    thing: ClassVar[str]
    """What it is, in words: "queue"."""
    content_errors: ClassVar[frozenset[str]]
    """Codes that refuse a whole call for what is in it."""
    found_for_seconds: ClassVar[float] = float("inf")
    """How long it is taken to be there without another look, while calls succeed."""

    def __init__(
        self,
        client: BaseClient,
        name: str,
        call_seconds: float,
        limits: PackLimits,
        clock: Callable[[], float] = boottime,
    ) -> None:
        """`call_seconds`: what the client's timeouts for connecting and writing add up to;
        `limits`: those of the service, until its own are known."""
        looking_before_sending(client)
        self._name = name
        self._call_seconds = call_seconds
        self._limits = limits
        self._clock = clock
        self._finding = threading.Lock()
        self._found: Found | None = None
        self._look_again_at = float("inf")

    @abstractmethod
    def _find(self) -> Found:
        """Look it up, and its limits. May raise what the SDK raises."""

    @abstractmethod
    def _entry(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        """The entry, or why the service can never take it."""

    @abstractmethod
    def _call(self, address: str, entries: Sequence[Entry]) -> list[EntryResult]:
        """Send, and read the answer, entry by entry. May raise what the SDK raises."""

    @property
    def limits(self) -> PackLimits:
        """The service's limits, and once it has been found its own."""
        return self._limits

    @property
    def call_seconds(self) -> float:
        return self._call_seconds

    def prepare(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        entry = self._entry(event, envelope)
        if isinstance(entry, Entry) and entry.size > self._limits.entry_bytes:
            return oversize(entry.size, self._limits.entry_bytes)
        return entry

    def open(self) -> None:
        with self._finding:
            asked_at = self._clock()
            if self._found is not None and asked_at < self._look_again_at:
                return
            try:
                found = self._find()
            except AWS_ERRORS as error:
                raise self._outage(error, f"looking for the {self.thing} {self._name}") from error
            self._limits = found.limits
            self._look_again_at = asked_at + self.found_for_seconds
            self._found = found

    def send(self, entries: Sequence[Entry], still_ours: StillOurs) -> Sequence[EntryResult]:
        doing = f"publishing to the {self.thing} {self._name}"
        self._check_sizes(entries)
        found = self._found
        if found is None:  # a neighbour's call has failed since `open`
            raise Unavailable(f"{doing}: it has to be looked for again", OutageKind.OTHER)

        def look() -> None:
            if not still_ours(self._call_seconds):
                raise Withheld(f"{doing}: the lease could end before the call does")

        try:
            with last_look(look):
                return self._call(found.address, entries)
        except AWS_ERRORS as error:
            if isinstance(error, ClientError) and code_of(error) in self.content_errors:
                size = sum(entry.size for entry in entries)
                raise PackRefused(f"{doing}: {error} ({size} bytes)") from error
            self._found = None  # it may have been deleted, and be created anew elsewhere
            raise self._outage(error, doing) from error

    def _outage(self, error: ClientError | BotoCoreError, doing: str) -> Unavailable:
        return outage(error, doing, thing=self.thing)

    def _check_sizes(self, entries: Sequence[Entry]) -> None:
        """Entries that were prepared before its own limit was known."""
        for entry in entries:
            if entry.size > self._limits.entry_bytes:
                raise PackRefused(oversize(entry.size, self._limits.entry_bytes).reason)


def numbered(entries: Sequence[Entry]) -> list[Any]:
    """What SQS and SNS take. The id is the position: it need only be unique within the call, and
    says where in the answer to look (adapters.aws.batches)."""
    return [{**entry.content, "Id": str(index)} for index, entry in enumerate(entries)]
