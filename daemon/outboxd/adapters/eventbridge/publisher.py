"""An event bus as a destination of the relay."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from outboxd.adapters.aws.batches import ACCEPTED, failed_entry
from outboxd.adapters.aws.destination import AwsDestination, Found
from outboxd.adapters.aws.targets import connections_for, targets_of
from outboxd.adapters.eventbridge.client import events_client
from outboxd.adapters.eventbridge.entries import LIMITS, eventbridge_entry
from outboxd.core.clock import boottime
from outboxd.core.destinations import EventBridgeTarget
from outboxd.core.outbox import StoredEvent
from outboxd.core.relay_outcomes import EntryResult, Faulted, Refused
from outboxd.core.relay_rules import longest_call_seconds
from outboxd.core.settings import Envelope, Settings
from outboxd.ports.destination import Entry

if TYPE_CHECKING:
    from types_boto3_events import EventBridgeClient
    from types_boto3_events.type_defs import PutEventsResultEntryTypeDef

VERIFIED_SECONDS = 10.0
"""How long a bus that was there is taken to be there. EventBridge accepts events for a bus that
does not exist, and drops them: this is for how long a bus that is deleted under the relay can
swallow events."""

_PERMANENT = frozenset(
    {"InvalidArgument", "InvalidAccountIdException", "MalformedDetail", "RedactionFailure"}
)
"""Codes of entries that no retry can help (API reference, PutEventsResultEntry). What is denied to
a source or a detail-type is there too, but a policy that is mended helps."""


def eventbridge_destinations(settings: Settings) -> dict[str, "EventBridgeDestination"]:
    """Every bus that the routes name, by its name there, on one client with single attempts."""
    relay, targets = settings.relay, targets_of(EventBridgeTarget, settings)
    if relay is None or not targets:
        return {}
    client = events_client(settings.aws, connections=connections_for(targets, relay), attempts=1)
    return {
        name: EventBridgeDestination(
            client,
            target,
            longest_call_seconds(settings),
            cloudevents_source=relay.cloudevents_source,
        )
        for name, target in targets.items()
    }


class EventBridgeDestination(AwsDestination):
    """Puts events on one bus, and asks at the start and again and again whether there is one."""

    thing = "event bus"
    content_errors = frozenset(
        {
            "ValidationException",
            "ValidationError",
            "PayloadTooLargeException",
            "RequestEntityTooLarge",
        }
    )
    found_for_seconds = VERIFIED_SECONDS

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
        super().__init__(client, target.bus_name, call_seconds, LIMITS, clock)
        self._client = client
        self._target = target
        self._cloudevents_source = cloudevents_source

    def _find(self) -> Found:
        # Whatever the answer is, also that this may not be asked, it is an outage: nothing else
        # would tell that events get lost.
        self._client.describe_event_bus(Name=self._target.bus_name)
        return Found(self._target.bus_name, LIMITS)

    def _entry(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        return eventbridge_entry(
            event,
            envelope,
            bus_name=self._target.bus_name,
            source=self._target.source,
            cloudevents_source=self._cloudevents_source,
        )

    def _call(self, address: str, entries: Sequence[Entry]) -> list[EntryResult]:
        """Its entries name the bus; each answer is at the position of its entry."""
        answer = self._client.put_events(Entries=[entry.content for entry in entries])
        results = [_result(each) for each in answer.get("Entries", ())]
        return [*results, *[_NO_ANSWER] * (len(entries) - len(results))]


_NO_ANSWER = Faulted("EventBridge said nothing about this entry")


def _result(answer: "PutEventsResultEntryTypeDef") -> EntryResult:
    """What became of the entry at the same position of the call."""
    code = answer.get("ErrorCode")
    if code is None:
        return ACCEPTED if answer.get("EventId") else _NO_ANSWER
    return failed_entry(code, answer.get("ErrorMessage", ""), permanent=code in _PERMANENT)
