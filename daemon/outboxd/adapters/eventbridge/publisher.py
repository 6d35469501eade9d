"""An event bus as a destination of the relay."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from outboxd.adapters.aws.batches import ACCEPTED, failed_entry
from outboxd.adapters.aws.outages import AWS_ERRORS, code_of, outage
from outboxd.adapters.eventbridge.client import events_client
from outboxd.adapters.eventbridge.entries import LIMITS, eventbridge_entry
from outboxd.core.clock import boottime
from outboxd.core.destinations import EventBridgeTarget, target_of
from outboxd.core.outbox import StoredEvent
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import EntryResult, Faulted, Refused
from outboxd.core.relay_rules import longest_call_seconds
from outboxd.core.routes import RouteTable
from outboxd.core.settings import Envelope, Settings
from outboxd.ports.destination import Entry, PackRefused

if TYPE_CHECKING:
    from types_boto3_events import EventBridgeClient
    from types_boto3_events.type_defs import PutEventsResultEntryTypeDef

VERIFIED_SECONDS = 10.0
"""How long a bus that was there is taken to be there. EventBridge accepts events for a bus that
does not exist, and drops them: this is for how long a bus that is deleted under the relay can
swallow events."""

_CONTENT_ERRORS = frozenset(
    {"ValidationException", "ValidationError", "PayloadTooLargeException", "RequestEntityTooLarge"}
)
"""Codes that refuse a whole call for what is in it."""

_PERMANENT = frozenset(
    {"InvalidArgument", "InvalidAccountIdException", "MalformedDetail", "RedactionFailure"}
)
"""Codes of entries that no retry can help (API reference, PutEventsResultEntry). What is denied to
a source or a detail-type is there too, but a policy that is mended helps."""


def eventbridge_destinations(settings: Settings) -> dict[str, "EventBridgeDestination"]:
    """Every bus that the routes name, by its name there, on one client with single attempts."""
    if settings.relay is None:
        return {}
    targets = {
        name: target
        for name in RouteTable(settings.relay.routes).destinations
        if isinstance(target := target_of(name, settings), EventBridgeTarget)
    }
    if not targets:
        return {}
    client = events_client(
        settings.aws, connections=settings.relay.packs_in_flight * len(targets), attempts=1
    )
    return {
        name: EventBridgeDestination(
            client,
            target,
            longest_call_seconds(settings),
            cloudevents_source=settings.relay.cloudevents_source,
        )
        for name, target in targets.items()
    }


class EventBridgeDestination:
    """Puts events on one bus, and asks at the start and again and again whether there is one."""

    def __init__(
        self,
        client: "EventBridgeClient",
        target: EventBridgeTarget,
        call_seconds: float,
        *,
        cloudevents_source: str = "outboxd",
        clock: Callable[[], float] = boottime,
    ) -> None:
        """`call_seconds`: what the client's timeouts for connecting and writing add up to."""
        self._client = client
        self._target = target
        self._call_seconds = call_seconds
        self._cloudevents_source = cloudevents_source
        self._clock = clock
        self._verifying = threading.Lock()
        self._verified_until = float("-inf")

    @property
    def limits(self) -> PackLimits:
        return LIMITS

    @property
    def call_seconds(self) -> float:
        return self._call_seconds

    def prepare(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        return eventbridge_entry(
            event,
            envelope,
            bus_name=self._target.bus_name,
            source=self._target.source,
            cloudevents_source=self._cloudevents_source,
        )

    def open(self) -> None:
        with self._verifying:
            asked_at = self._clock()
            if asked_at < self._verified_until:
                return
            try:
                self._client.describe_event_bus(Name=self._target.bus_name)
            except AWS_ERRORS as error:
                # Also when it may not be asked: nothing else would tell that events get lost.
                doing = f"looking for the event bus {self._target.bus_name}"
                raise outage(error, doing, thing="event bus") from error
            self._verified_until = asked_at + VERIFIED_SECONDS

    def send(self, entries: Sequence[Entry]) -> Sequence[EntryResult]:
        doing = f"putting events on the bus {self._target.bus_name}"
        try:
            answer = self._client.put_events(Entries=[entry.content for entry in entries])
        except AWS_ERRORS as error:
            if isinstance(error, ClientError) and code_of(error) in _CONTENT_ERRORS:
                size = sum(entry.size for entry in entries)
                raise PackRefused(f"{doing}: {error} ({size} bytes)") from error
            self._verified_until = float("-inf")
            raise outage(error, doing, thing="event bus") from error
        results = [_result(each) for each in answer.get("Entries", ())]
        return [*results, *[_NO_ANSWER] * (len(entries) - len(results))]


_NO_ANSWER = Faulted("EventBridge said nothing about this entry")


def _result(answer: "PutEventsResultEntryTypeDef") -> EntryResult:
    """What became of the entry at the same position of the call."""
    code = answer.get("ErrorCode")
    if code is None:
        return ACCEPTED if answer.get("EventId") else _NO_ANSWER
    return failed_entry(code, answer.get("ErrorMessage", ""), permanent=code in _PERMANENT)
