"""A queue as a destination: on two servers by different authors, and against scripted answers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import Stubber
from moto.server import ThreadedMotoServer

from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.entries import MESSAGE_BYTES
from outboxd.adapters.sqs.publisher import SqsDestination, sqs_destinations
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
from outboxd.ports.destination import Entry, PackRefused
from tests.localaws.support import running_aws
from tests.relay.destination_benches import still_ours
from tests.relay.scene import Scene, eventually

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_numbers = count(1)


@contextmanager
def localaws() -> Iterator[str]:
    with running_aws() as aws:
        yield aws.endpoint


@contextmanager
def moto() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture(scope="module", params=[localaws, moto], ids=["localaws", "moto"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture
def sqs(endpoint: str) -> "SQSClient":
    return sqs_client(AwsSettings(endpoint_url=endpoint), connections=4, attempts=1)


@pytest.fixture
def queue_name() -> str:
    return f"queue-{next(_numbers)}"


def an_event(number: int = 1, payload: str = '{"amount": 1}', **changes: Any) -> StoredEvent:
    values: dict[str, Any] = {
        "key": number,
        "seq": number,
        "id": f"0194d0c0-0000-7000-8000-{number:012}",
        "event_type": "order.placed",
        "aggregate_type": "order",
        "aggregate_id": f"o-{number}",
        "payload": payload,
        "traceparent": None,
        "occurred_at": "2026-01-01T00:00:00.000000Z",
        "born_at": 0.0,
        "attempts": 0,
        "due_at": 0.0,
        "delivered_to": None,
    }
    return StoredEvent(**{**values, **changes})


def prepared(destination: SqsDestination, *events: StoredEvent) -> list[Entry]:
    entries = [destination.prepare(event, "event") for event in events]
    return [entry for entry in entries if isinstance(entry, Entry)]


def received(sqs: "SQSClient", queue_name: str) -> list[Any]:
    url = sqs.get_queue_url(QueueName=queue_name)["QueueUrl"]
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=1
    )
    return list(answer.get("Messages", []))


def test_a_pack_arrives_with_its_attributes(sqs: "SQSClient", queue_name: str) -> None:
    sqs.create_queue(QueueName=queue_name)
    destination = SqsDestination(sqs, queue_name, 1.0)
    destination.open()
    events = [an_event(n, traceparent="00-1" if n == 2 else None) for n in range(1, 11)]

    results = destination.send(prepared(destination, *events), still_ours)

    assert results == [Accepted()] * 10
    messages = {json.loads(each["Body"])["id"]: each for each in received(sqs, queue_name)}
    assert set(messages) <= {event.id for event in events}
    for message in messages.values():
        body = json.loads(message["Body"])
        assert list(body) == [
            "id",
            "type",
            "aggregate_type",
            "aggregate_id",
            "occurred_at",
            "payload",
        ]
        attributes = {
            name: each["StringValue"] for name, each in message["MessageAttributes"].items()
        }
        expected = {"event_type": "order.placed", "aggregate_id": body["aggregate_id"]}
        assert attributes == expected | (
            {"traceparent": "00-1"} if body["aggregate_id"] == "o-2" else {}
        )


def test_characters_that_sqs_refuses_do_not_fail_the_pack(
    sqs: "SQSClient", queue_name: str
) -> None:
    sqs.create_queue(QueueName=queue_name)
    destination = SqsDestination(sqs, queue_name, 1.0)
    destination.open()
    odd = an_event(1, payload='{"text": "\ufffe \uffff é 😀 \\u0001"}')

    results = destination.send(prepared(destination, odd, an_event(2)), still_ours)

    assert results == [Accepted()] * 2
    texts = [json.loads(each["Body"])["payload"].get("text") for each in received(sqs, queue_name)]
    assert set(texts) <= {"\ufffe \uffff é 😀 \x01", None}


def test_a_fifo_queue_gets_groups_and_ids(sqs: "SQSClient", queue_name: str) -> None:
    fifo = f"{queue_name}.fifo"
    sqs.create_queue(QueueName=fifo, Attributes={"FifoQueue": "true"})
    destination = SqsDestination(sqs, fifo, 1.0)
    destination.open()
    odd = an_event(2, aggregate_id="ключ " * 40)
    entries = prepared(destination, an_event(1), odd)

    assert destination.send(entries, still_ours) == [Accepted()] * 2
    assert destination.send(entries, still_ours) == [Accepted()] * 2
    assert len(received(sqs, fifo)) == 2


def test_a_queue_that_does_not_exist_is_an_outage_until_it_does(
    sqs: "SQSClient", queue_name: str
) -> None:
    destination = SqsDestination(sqs, queue_name, 1.0)

    with pytest.raises(Unavailable) as caught:
        destination.open()
    assert caught.value.kind is OutageKind.MISSING
    sqs.create_queue(QueueName=queue_name)
    destination.open()
    assert destination.send(prepared(destination, an_event()), still_ours) == [Accepted()]


def test_a_deleted_queue_is_looked_up_again(sqs: "SQSClient", queue_name: str) -> None:
    url = sqs.create_queue(QueueName=queue_name)["QueueUrl"]
    destination = SqsDestination(sqs, queue_name, 1.0)
    destination.open()
    sqs.delete_queue(QueueUrl=url)

    with pytest.raises(Unavailable) as sending:
        destination.send(prepared(destination, an_event()), still_ours)
    with pytest.raises(Unavailable) as looking_up:
        destination.open()

    assert sending.value.kind is OutageKind.MISSING
    assert looking_up.value.kind is OutageKind.MISSING


def test_the_queues_own_limit_counts_once_it_is_known(sqs: "SQSClient", queue_name: str) -> None:
    sqs.create_queue(QueueName=queue_name, Attributes={"MaximumMessageSize": "2048"})
    destination = SqsDestination(sqs, queue_name, 1.0)
    large = an_event(payload=json.dumps("x" * 3000))
    (early,) = prepared(destination, large)
    destination.open()

    with pytest.raises(PackRefused, match=r"above the limit of 2048 bytes"):
        destination.send([early], still_ours)
    refused = destination.prepare(large, "event")

    assert isinstance(refused, Refused)
    assert "2048 bytes" in refused.reason


async def test_a_relay_publishes_to_a_real_queue(
    database: str, endpoint: str, sqs: "SQSClient", queue_name: str
) -> None:
    sqs.create_queue(QueueName=queue_name)
    scene = Scene(database)
    relay_settings = RelaySettings(routes=(RouteSettings(events="order.*", to=("sqs:orders",)),))
    settings = Settings(
        aws=AwsSettings(endpoint_url=endpoint),
        relay=relay_settings,
        queues={"orders": QueueSettings(queue_name=queue_name)},
    )
    scene.insert([f"order-{n}" for n in range(25)])

    async with scene.relay(sqs_destinations(settings), relay_settings):
        await eventually(lambda: not scene.pending())

    url = sqs.get_queue_url(QueueName=queue_name)["QueueUrl"]
    depth = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])[
        "Attributes"
    ]
    assert depth == {"ApproximateNumberOfMessages": "25"}


def attribute_bytes(event: StoredEvent) -> int:
    pairs = (("event_type", event.event_type), ("aggregate_id", event.aggregate_id))
    return sum(len(name) + len("String") + len(value.encode()) for name, value in pairs)


@pytest.mark.parametrize("filling", ["x", "é", "\U0001f600"])
def test_sizes_are_bytes_of_body_and_attributes(filling: str) -> None:
    destination = SqsDestination(_no_client(), "orders", 1.0)
    width = len(filling.encode())
    empty = an_event(payload='""', aggregate_id="ü-1")
    (entry,) = prepared(destination, empty)
    body_bytes = len(entry.content["MessageBody"].encode())
    assert entry.size == body_bytes + attribute_bytes(empty)
    letters = (MESSAGE_BYTES - entry.size) // width

    fits = an_event(payload=f'"{filling * letters}"', aggregate_id="ü-1")
    too_large = an_event(payload=f'"{filling * (letters + 1)}"', aggregate_id="ü-1")

    (largest,) = prepared(destination, fits)
    assert MESSAGE_BYTES - width < largest.size <= MESSAGE_BYTES
    refused = destination.prepare(too_large, "event")
    assert isinstance(refused, Refused)
    assert f"{largest.size + width} bytes" in refused.reason
    assert f"{MESSAGE_BYTES} bytes" in refused.reason


@pytest.mark.parametrize("text", ["a\x00b", "a\x1fb", "a\ufffeb"])
def test_an_attribute_that_sqs_refuses_is_refused_before(text: str) -> None:
    destination = SqsDestination(_no_client(), "orders", 1.0)

    assert isinstance(destination.prepare(an_event(aggregate_id=text), "event"), Refused)


def _no_client() -> "SQSClient":
    return boto3.client("sqs", region_name="us-east-1")


@pytest.fixture
def stubbed() -> Iterator[tuple[SqsDestination, Stubber]]:
    client = _no_client()
    with Stubber(client) as stubber:
        stubber.add_response("get_queue_url", {"QueueUrl": "https://sqs/1/orders"})
        stubber.add_client_error("get_queue_attributes", "AccessDenied")
        destination = SqsDestination(client, "orders", 1.0)
        destination.open()
        yield destination, stubber


def test_a_partial_failure_is_read_entry_by_entry(
    stubbed: tuple[SqsDestination, Stubber],
) -> None:
    destination, stubber = stubbed
    failures = [
        ("1", True, "InvalidMessageContents"),
        ("2", False, "InternalError"),
        ("3", True, "RequestThrottled"),
        ("4", True, "KmsAccessDenied"),
    ]
    stubber.add_response(
        "send_message_batch",
        {
            "Successful": [{"Id": "0", "MessageId": "m", "MD5OfMessageBody": "0" * 32}],
            "Failed": [
                {"Id": place, "SenderFault": fault, "Code": code, "Message": "why"}
                for place, fault, code in failures
            ],
        },
    )

    results = destination.send(prepared(destination, *(an_event(n) for n in range(6))), still_ours)

    assert results == [
        Accepted(),
        Refused("InvalidMessageContents: why"),
        Faulted("InternalError: why"),
        Faulted("RequestThrottled: why", blameless=True),
        Faulted("KmsAccessDenied: why", blameless=True),
        Faulted("SQS said nothing about this entry"),
    ]


@pytest.mark.parametrize(
    "code",
    [
        "AWS.SimpleQueueService.BatchRequestTooLong",
        "BatchRequestTooLong",
        "InvalidMessageContents",
    ],
)
def test_a_call_that_is_refused_for_its_content_may_be_split(
    stubbed: tuple[SqsDestination, Stubber], code: str
) -> None:
    destination, stubber = stubbed
    stubber.add_client_error("send_message_batch", code, http_status_code=400)

    with pytest.raises(PackRefused):
        destination.send(prepared(destination, an_event()), still_ours)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AccessDenied", 403, OutageKind.DENIED),
        ("ExpiredToken", 403, OutageKind.CREDENTIALS),
        ("ThrottlingException", 400, OutageKind.THROTTLED),
        ("InternalFailure", 500, OutageKind.SERVER_FAULT),
        ("AWS.SimpleQueueService.NonExistentQueue", 400, OutageKind.MISSING),
    ],
)
def test_a_failed_call_is_an_outage(
    stubbed: tuple[SqsDestination, Stubber], code: str, status: int, kind: OutageKind
) -> None:
    destination, stubber = stubbed
    stubber.add_client_error("send_message_batch", code, http_status_code=status)

    with pytest.raises(Unavailable) as caught:
        destination.send(prepared(destination, an_event()), still_ours)

    assert caught.value.kind is kind


def test_destinations_come_from_the_routes_and_are_sent_to_once() -> None:
    settings = Settings(
        relay=RelaySettings(
            routes=(
                RouteSettings(events="order.*", to=("sqs:orders", "sqs:audit")),
                RouteSettings(events="*", to=("sqs:audit",)),
            )
        )
    )

    destinations = sqs_destinations(settings)

    assert list(destinations) == ["sqs:orders", "sqs:audit"]
    assert destinations["sqs:audit"].call_seconds == 7.0
    assert sqs_destinations(Settings()) == {}
