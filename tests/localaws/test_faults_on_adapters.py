"""What outboxd's own adapters make of each fault."""

from collections.abc import Iterator
from typing import Any

import pytest

from outboxd.adapters.sqs.publisher import SqsDestination, sqs_destinations
from outboxd.adapters.sqs.queue import SqsQueue, consumer_queue
from outboxd.adapters.sqs.visibility import SqsVisibility, extender_visibility
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.outbox import StoredEvent
from outboxd.core.relay_outcomes import Accepted, Faulted, Refused
from outboxd.core.settings import (
    AwsSettings,
    QueueSettings,
    RelaySettings,
    RouteSettings,
    Settings,
)
from outboxd.ports.destination import Entry
from outboxd.ports.queue import Hiding
from outboxd.ports.visibility import Extended, Failed, Lost, Timeout
from tests.localaws.staging import Stage
from tests.relay.destination_benches import still_ours

WHOLE_CALLS: list[tuple[str, dict[str, Any], OutageKind]] = [
    ("throttle", {}, OutageKind.THROTTLED),
    ("throttle", {"code": "RequestThrottled"}, OutageKind.THROTTLED),
    ("server_error", {}, OutageKind.SERVER_FAULT),
    ("server_error", {"status": 503}, OutageKind.SERVER_FAULT),
    ("expired_token", {}, OutageKind.CREDENTIALS),
    ("access_denied", {}, OutageKind.DENIED),
    ("error", {"code": "KmsDisabled"}, OutageKind.DENIED),
    ("error", {"code": "QueueDoesNotExist"}, OutageKind.MISSING),
    ("hang", {}, OutageKind.TIMEOUT),
    ("reset", {}, OutageKind.TIMEOUT),
    ("reset", {"when": "before"}, OutageKind.TIMEOUT),
]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def settings(stage: Stage) -> Settings:
    route = RouteSettings(events="*", to=(f"sqs:{stage.name}",))
    return Settings(
        aws=AwsSettings(endpoint_url=stage.aws.endpoint_url, read_timeout_seconds=2.0),
        relay=RelaySettings(routes=(route,)),
        queues={stage.name: QueueSettings(wait_seconds=0)},
    )


@pytest.fixture
def destination(stage: Stage) -> SqsDestination:
    (destination,) = sqs_destinations(settings(stage)).values()
    destination.open()
    return destination


@pytest.fixture
def queue(stage: Stage) -> SqsQueue:
    return consumer_queue(settings(stage), stage.name)


@pytest.fixture
def visibility(stage: Stage) -> Iterator[SqsVisibility]:
    visibility = extender_visibility(settings(stage), calls_per_queue=1)
    yield visibility
    visibility.close()


def prepared(destination: SqsDestination, number: int) -> list[Entry]:
    entries = []
    for seq in range(number):
        event = StoredEvent(
            key=seq,
            seq=seq,
            id=f"0194d0c0-0000-7000-8000-{seq:012}",
            event_type="order.placed",
            aggregate_type="order",
            aggregate_id=f"o-{seq}",
            payload="{}",
            traceparent=None,
            occurred_at="2026-01-01T00:00:00Z",
            born_at=0.0,
            attempts=0,
            due_at=0.0,
            delivered_to=None,
        )
        entry = destination.prepare(event, "event")
        assert isinstance(entry, Entry)
        entries.append(entry)
    return entries


@pytest.mark.parametrize(("fault", "settings_", "kind"), WHOLE_CALLS)
def test_a_destination_tells_why_a_call_failed(
    stage: Stage,
    destination: SqsDestination,
    fault: str,
    settings_: dict[str, Any],
    kind: OutageKind,
) -> None:
    getattr(stage.faults, fault)("SendMessageBatch", queue=stage.name, **settings_)

    with pytest.raises(Unavailable) as outage:
        destination.send(prepared(destination, 2), still_ours)

    assert outage.value.kind is kind
    destination.open()
    assert destination.send(prepared(destination, 2), still_ours) == [Accepted(), Accepted()]


@pytest.mark.parametrize(("fault", "settings_", "kind"), WHOLE_CALLS)
async def test_a_consumer_s_queue_tells_why_a_call_failed(
    stage: Stage, queue: SqsQueue, fault: str, settings_: dict[str, Any], kind: OutageKind
) -> None:
    assert await queue.receive(1, 0) == []
    getattr(stage.faults, fault)("ReceiveMessage", queue=stage.name, **settings_)

    with pytest.raises(Unavailable) as outage:
        await queue.receive(1, 0)

    assert outage.value.kind is kind
    assert await queue.receive(1, 0) == []


def test_a_destination_settles_a_partly_failed_batch_entry_by_entry(
    stage: Stage, destination: SqsDestination
) -> None:
    stage.faults.fail_entries("SendMessageBatch", entries=[1, 3], queue=stage.name)

    results = destination.send(prepared(destination, 5), still_ours)

    assert [type(result) for result in results] == [Accepted, Faulted, Accepted, Faulted, Accepted]
    assert stage.depth() == (3, 0)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("RequestThrottled", Faulted("RequestThrottled: why", blameless=True)),
        ("InvalidMessageContents", Refused("InvalidMessageContents: why")),
    ],
)
def test_a_destination_tells_a_throttled_entry_from_a_bad_one(
    stage: Stage, destination: SqsDestination, code: str, expected: object
) -> None:
    stage.faults.fail_entries(
        "SendMessageBatch", code=code, message="why", sender_fault=True, queue=stage.name
    )

    assert destination.send(prepared(destination, 1), still_ours) == [expected]


async def test_a_swallowed_delete_is_no_refusal_and_the_message_comes_back(
    stage: Stage, queue: SqsQueue
) -> None:
    stage.send("x")
    (message,) = await queue.receive(10, 0)
    stage.faults.swallow("DeleteMessageBatch", queue=stage.name)

    assert await queue.delete([message.receipt_handle]) == []

    stage.aws.advance(30)
    (again,) = await queue.receive(10, 0)
    assert (again.message_id, again.receive_count) == (message.message_id, 2)


@pytest.mark.parametrize(("fault", "permanent"), [("stale_receipt", True), ("fail_entries", False)])
async def test_a_delete_is_refused_entry_by_entry_for_good_or_for_now(
    stage: Stage, queue: SqsQueue, fault: str, permanent: bool
) -> None:
    stage.send("a", "b")
    messages = await queue.receive(10, 0)
    getattr(stage.faults, fault)("DeleteMessageBatch", entries=[1], queue=stage.name)

    refusals = await queue.delete([message.receipt_handle for message in messages])

    assert [(refusal.index, refusal.permanent) for refusal in refusals] == [(1, permanent)]
    assert stage.depth() == (0, 1)


async def test_a_backoff_whose_receipt_is_stale_is_refused_for_good(
    stage: Stage, queue: SqsQueue
) -> None:
    stage.send("x")
    (message,) = await queue.receive(10, 0)
    stage.faults.stale_receipt("ChangeMessageVisibilityBatch", queue=stage.name)

    (refusal,) = await queue.hide([Hiding(message.receipt_handle, 0)])

    assert (refusal.code, refusal.permanent) == ("ReceiptHandleIsInvalid", True)


async def test_a_duplicate_is_received_as_the_same_message(stage: Stage, queue: SqsQueue) -> None:
    stage.send("x")
    stage.faults.duplicate(queue=stage.name)

    first, second = [*await queue.receive(10, 0), *await queue.receive(10, 0)]

    assert (first.message_id, first.receive_count) == (second.message_id, second.receive_count)
    assert first.receipt_handle != second.receipt_handle


async def test_an_extension_is_lost_by_a_stale_receipt_and_not_by_a_throttle(
    stage: Stage, visibility: SqsVisibility
) -> None:
    stage.send("a", "b", "c")
    timeouts = [Timeout(message["ReceiptHandle"], 30) for message in stage.receive()]
    batch = "ChangeMessageVisibilityBatch"
    stage.faults.stale_receipt(batch, code="MessageNotInflight", entries=[0], queue=stage.name)
    stage.faults.fail_entries(
        batch, code="RequestThrottled", sender_fault=True, entries=[1], queue=stage.name
    )

    first = await visibility.change(stage.name, timeouts)
    second = await visibility.change(stage.name, timeouts)

    lost = Lost("AWS.SimpleQueueService.MessageNotInflight")
    assert first == [lost, Extended(), Extended()]
    assert second == [Extended(), Failed("RequestThrottled"), Extended()]


async def test_an_extension_that_hangs_is_given_up_in_time_for_another(
    stage: Stage, visibility: SqsVisibility
) -> None:
    stage.send("x")
    timeouts = [Timeout(message["ReceiptHandle"], 600) for message in stage.receive()]
    stage.faults.hang("ChangeMessageVisibilityBatch", queue=stage.name)

    with pytest.raises(Unavailable) as outage:
        await visibility.change(stage.name, timeouts)

    assert outage.value.kind is OutageKind.TIMEOUT
    assert await visibility.change(stage.name, timeouts) == [Extended()]
