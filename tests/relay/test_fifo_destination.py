"""From the outbox to a FIFO queue: one message group for each aggregate, in order, once."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.entries import sqs_entry
from outboxd.adapters.sqs.publisher import sqs_destinations
from outboxd.core.outbox import StoredEvent
from outboxd.core.outgoing import ILLEGAL
from outboxd.core.settings import AwsSettings, QueueSettings, RouteSettings, Settings
from outboxd.localaws.sqs.validation import check_token
from outboxd.ports.destination import Entry
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here
from tests.emulators import EMULATORS
from tests.relay.scene import Scene, eventually, quick

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

AGGREGATES = ["o-1", "o-2", "ключ заказа", "long" * 40, "a b"]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture(params=EMULATORS)
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    with EMULATORS[request.param]() as endpoint:
        yield endpoint


TABLES: list[dict[str, QueueSettings]] = [
    {"orders.fifo": QueueSettings()},
    {"orders": QueueSettings(queue_name="orders.fifo")},
]


def configured(endpoint: str, queues: dict[str, QueueSettings]) -> Settings:
    (table,) = queues
    routes = (RouteSettings(events="order.*", to=(f"sqs:{table}",)),)
    return Settings(
        aws=AwsSettings(
            endpoint_url=endpoint, connect_timeout_seconds=0.5, read_timeout_seconds=2.0
        ),
        relay=quick(routes=routes),
        queues=queues,
    )


def created(endpoint: str) -> "SQSClient":
    sqs = sqs_client(AwsSettings(endpoint_url=endpoint), connections=1)
    sqs.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})
    return sqs


def everything(sqs: "SQSClient") -> list[Any]:
    """All messages, in order within each group, deleted as they come."""
    url = sqs.get_queue_url(QueueName="orders.fifo")["QueueUrl"]
    found: list[Any] = []
    while messages := sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=10,
        MessageSystemAttributeNames=["MessageGroupId", "MessageDeduplicationId"],
    ).get("Messages"):
        found += messages
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def numbered(scene: Scene, each: int) -> None:
    for number in range(each):
        scene.insert(AGGREGATES, payload=json.dumps({"number": number}))


def by_group(messages: list[Any]) -> dict[str, list[tuple[str, int]]]:
    groups: dict[str, list[tuple[str, int]]] = {}
    for message in messages:
        body = json.loads(message["Body"])
        assert message["Attributes"]["MessageDeduplicationId"] == body["id"]
        known = groups.setdefault(message["Attributes"]["MessageGroupId"], [])
        known.append((body["aggregate_id"], body["payload"]["number"]))
    return groups


@pytest.mark.parametrize("queues", TABLES, ids=["table", "queue_name"])
async def test_each_aggregate_is_a_group_in_the_order_of_its_events(
    database: str, endpoint: str, queues: dict[str, QueueSettings]
) -> None:
    sqs = created(endpoint)
    scene, settings = Scene(database), configured(endpoint, queues)
    assert settings.relay is not None
    numbered(scene, each=4)

    async with scene.relay(sqs_destinations(settings), settings.relay):
        await eventually(lambda: not scene.pending())

    groups = by_group(everything(sqs))
    assert {"order/o-1", "order/o-2"} <= set(groups)
    assert sorted(groups.values()) == sorted(
        [(aggregate, number) for number in range(4)] for aggregate in AGGREGATES
    )


FAULTS: list[Callable[[LocalAws], object]] = [
    lambda aws: aws.faults.reset("SendMessageBatch", when="after", count=3),
    lambda aws: aws.faults.fail_entries("SendMessageBatch", when="after", count=3, entries=[0, 1]),
    lambda aws: aws.faults.fail_entries("SendMessageBatch", count=3, entries=[0]),
]


@pytest.mark.parametrize("fault", FAULTS, ids=["answer lost", "wrongly failed", "failed"])
async def test_what_is_sent_again_arrives_once_and_in_order(
    database: str, aws: LocalAws, fault: Callable[[LocalAws], object]
) -> None:
    sqs = created(aws.endpoint_url)
    scene, settings = Scene(database), configured(aws.endpoint_url, TABLES[0])
    assert settings.relay is not None
    numbered(scene, each=4)
    fault(aws)

    async with scene.relay(sqs_destinations(settings), settings.relay):
        await eventually(lambda: not scene.pending())

    groups = by_group(everything(sqs))
    assert sorted(groups.values()) == sorted(
        [(aggregate, number) for number in range(4)] for aggregate in AGGREGATES
    )


def group_of(aggregate_type: str, aggregate_id: str) -> str:
    event = StoredEvent(
        key=1,
        seq=1,
        id="0194d0c0-0000-7000-8000-000000000001",
        event_type="order.placed",
        aggregate_type=aggregate_type,
        aggregate_id=aggregate_id,
        payload="1",
        traceparent=None,
        occurred_at="2026-01-01T00:00:00.000000Z",
        born_at=0.0,
        attempts=0,
        due_at=0.0,
        delivered_to=None,
    )
    entry = sqs_entry(event, "event", fifo=True)
    assert isinstance(entry, Entry)
    return str(entry.content["MessageGroupId"])


# What PostgreSQL stores and SQS takes as an attribute; type and id are in no group as a pair that
# could be read in two ways.
LEGAL = st.text(st.characters(exclude_categories=["Cs"]), max_size=200).filter(
    lambda text: not ILLEGAL.search(text)
)


@given(LEGAL, LEGAL)
def test_every_aggregate_has_a_group_that_sqs_takes(kind: str, aggregate: str) -> None:
    group = group_of(kind, aggregate)

    check_token(group, "MessageGroupId")
    assert group == group_of(kind, aggregate)


@given(LEGAL, LEGAL)
def test_two_aggregates_of_a_type_are_two_groups(one: str, other: str) -> None:
    assert (group_of("order", one) == group_of("order", other)) == (one == other)


@pytest.mark.parametrize(
    ("aggregate", "kept"),
    [("o-1", True), ("x" * 122, True), ("x" * 123, False), ("a b", False), ("é", False)],
)
def test_a_group_is_readable_as_far_as_sqs_allows(aggregate: str, kept: bool) -> None:
    group = group_of("order", aggregate)

    assert (group == f"order/{aggregate}") is kept
    assert kept or len(group) == 32
