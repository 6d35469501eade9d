"""What EventBridge is given, and what its answers mean, entry by entry."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from outboxd.adapters.eventbridge.entries import MOST_BYTES, eventbridge_entry
from outboxd.adapters.eventbridge.publisher import VERIFIED_SECONDS, EventBridgeDestination
from outboxd.core.destinations import EventBridgeTarget
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.outbox import StoredEvent
from outboxd.core.relay_outcomes import Accepted, Faulted, Refused
from outboxd.ports.destination import Entry, PackRefused
from tests.relay.destination_benches import TRACE, an_event, still_ours

FOUND = {"Name": "shop", "Arn": "arn:aws:events:us-east-1:111122223333:event-bus/shop"}


def entry_of(event: StoredEvent) -> Entry:
    entry = eventbridge_entry(
        event, "event", bus_name="shop", source="shop.orders", cloudevents_source="outboxd"
    )
    assert isinstance(entry, Entry)
    return entry


def test_an_entry_says_where_from_what_of_whom_and_when() -> None:
    content = entry_of(an_event(7)).content

    detail = json.loads(content.pop("Detail"))
    assert content == {
        "EventBusName": "shop",
        "Source": "shop.orders",
        "DetailType": "order.placed",
        "Resources": ["o-7"],
        "Time": datetime(2026, 1, 1, microsecond=123456, tzinfo=UTC),
    }
    assert detail["aggregate_id"] == "o-7"
    assert detail["traceparent"] == TRACE


def test_a_size_is_time_source_type_detail_and_resources() -> None:
    entry = entry_of(an_event(payload='"é"', aggregate_id="ключ"))

    texts = ("shop.orders", "order.placed", entry.content["Detail"], "ключ")
    assert entry.size == 14 + sum(len(text.encode()) for text in texts)


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "1969-12-31T00:00:00Z", None])
def test_no_event_dies_of_a_time_that_cannot_be_told(moment: str | None) -> None:
    entry = entry_of(an_event(occurred_at=moment or "12026-01-01T00:00:00Z"))

    assert "Time" not in entry.content


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"event_type": "x" * 129}, "129 characters, above the 128"),
        ({"payload": json.dumps("x" * MOST_BYTES)}, f"above the limit of {MOST_BYTES} bytes"),
    ],
)
def test_what_can_never_be_taken_is_refused_at_once(changes: Any, words: str) -> None:
    refused = eventbridge_entry(
        an_event(**changes), "event", bus_name="b", source="s", cloudevents_source="c"
    )

    assert isinstance(refused, Refused)
    assert words in refused.reason


class Staged:
    """A destination on scripted answers, and on a clock that only the test moves."""

    def __init__(self) -> None:
        client = boto3.client("events", region_name="us-east-1")
        self.stubber = Stubber(client)
        self.now = 0.0
        self.destination = EventBridgeDestination(
            client, EventBridgeTarget("shop", "shop.orders"), 1.0, clock=lambda: self.now
        )

    def find(self) -> None:
        self.stubber.add_response("describe_event_bus", FOUND, {"Name": "shop"})
        self.destination.open()

    def send(self, events: int) -> Any:
        return self.destination.send(
            [entry_of(an_event(number)) for number in range(events)], still_ours
        )


@pytest.fixture
def staged() -> Iterator[Staged]:
    staged = Staged()
    with staged.stubber:
        yield staged
        staged.stubber.assert_no_pending_responses()


def test_results_are_by_position(staged: Staged) -> None:
    staged.find()
    codes = [
        "InternalFailure",
        "ThrottlingException",
        "MalformedDetail",
        "InvalidArgument",
        "NotAuthorizedForSourceException",
    ]
    answers = [{"EventId": "e"}, *({"ErrorCode": code, "ErrorMessage": "why"} for code in codes)]
    staged.stubber.add_response("put_events", {"FailedEntryCount": 5, "Entries": answers})

    assert staged.send(7) == [
        Accepted(),
        Faulted("InternalFailure: why"),
        Faulted("ThrottlingException: why", blameless=True),
        Refused("MalformedDetail: why"),
        Refused("InvalidArgument: why"),
        Faulted("NotAuthorizedForSourceException: why", blameless=True),
        Faulted("EventBridge said nothing about this entry"),
    ]


def test_a_call_that_is_too_large_may_be_split(staged: Staged) -> None:
    staged.find()
    staged.stubber.add_client_error("put_events", "ValidationException", http_status_code=400)

    with pytest.raises(PackRefused, match=r"\(\d+ bytes\)"):
        staged.send(2)


def test_a_bus_is_looked_for_again_after_a_while(staged: Staged) -> None:
    staged.find()
    staged.now = VERIFIED_SECONDS - 0.1
    staged.destination.open()

    staged.now = VERIFIED_SECONDS
    staged.stubber.add_client_error("describe_event_bus", "ResourceNotFoundException")
    with pytest.raises(Unavailable) as caught:
        staged.destination.open()

    assert caught.value.kind is OutageKind.MISSING
    assert "the event bus does not exist (run `outboxd provision`)" in str(caught.value)


def test_a_bus_that_may_not_be_looked_for_gets_nothing(staged: Staged) -> None:
    staged.stubber.add_client_error("describe_event_bus", "AccessDeniedException")

    with pytest.raises(Unavailable) as caught:
        staged.destination.open()

    assert caught.value.kind is OutageKind.DENIED


def test_a_failed_call_has_the_bus_looked_for_before_the_next(staged: Staged) -> None:
    staged.find()
    staged.stubber.add_client_error("put_events", "InternalFailure", http_status_code=500)
    with pytest.raises(Unavailable):
        staged.send(1)

    staged.stubber.add_response("describe_event_bus", FOUND)
    staged.destination.open()
