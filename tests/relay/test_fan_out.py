"""From the outbox over SNS or EventBridge to a queue: a consumer gets the event that was stored."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

import pytest

from outboxd.adapters.destinations import relay_destinations
from outboxd.adapters.memory_destination import MemoryDestination
from outboxd.adapters.provisioning import Provisioner
from outboxd.core.envelopes import open_envelope
from outboxd.core.settings import (
    AwsSettings,
    DestinationsSettings,
    EventBridgeSettings,
    QueueSettings,
    RouteSettings,
    RuleSettings,
    Settings,
    SnsSettings,
    SubscriptionSettings,
)
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here
from tests.localaws.fanout import Fanout, open_fanout
from tests.relay.destination_benches import received
from tests.relay.scene import Scene, eventually, quick

QUEUES = {
    "raw": QueueSettings(wait_seconds=0),
    "wrapped": QueueSettings(wait_seconds=0),
    "bridged": QueueSettings(wait_seconds=0),
    "ordered": QueueSettings(queue_name="ordered.fifo", wait_seconds=0),
}

DESTINATIONS = DestinationsSettings(
    sns={
        "order-topic": SnsSettings(
            subscriptions=(
                SubscriptionSettings(queue="raw", events=("order.*",)),
                SubscriptionSettings(queue="wrapped", raw=False),
            )
        ),
        "ordered-topic": SnsSettings(
            topic_name="ordered-topic.fifo",
            subscriptions=(SubscriptionSettings(queue="ordered"),),
        ),
    },
    eventbridge={
        "shop": EventBridgeSettings(
            source="shop.orders",
            rules=(RuleSettings(name="orders", events=("order.*",), to=("sqs:bridged",)),),
        )
    },
)

EVERYWHERE = ("sns:order-topic", "sns:ordered-topic", "eventbridge:shop", "memory:test")


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture
def fanout(aws: LocalAws) -> Iterator[Fanout]:
    with open_fanout(aws.endpoint_url) as fanout:
        yield fanout


def configured(aws: LocalAws, **route: Any) -> Settings:
    routes = (RouteSettings(events="order.*", **{"to": EVERYWHERE, **route}),)
    return Settings(
        aws=AwsSettings(
            endpoint_url=aws.endpoint_url, connect_timeout_seconds=0.5, read_timeout_seconds=2.0
        ),
        relay=quick(routes=routes),
        destinations=DESTINATIONS,
        queues=QUEUES,
    )


def provision(settings: Settings) -> None:
    provisioner = Provisioner(settings)
    provisioner.carry_out(provisioner.plan())


def opened(fanout: Fanout, queue: str, least: int) -> list[tuple[str, str, str, Any]]:
    url = fanout.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    incoming = [open_envelope(message) for message in received(fanout, url, least)]
    assert all(each.occurred_at.tzinfo == UTC for each in incoming)
    return [
        (str(each.id), each.type, each.aggregate_id, json.loads(bytes(each.payload)))
        for each in incoming
    ]


def taken(fanout: Fanout, queue: str) -> list[str]:
    """All bodies of a queue, deleted as they come: a group waits for its head."""
    url = fanout.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    found: list[str] = []
    while messages := fanout.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get(
        "Messages"
    ):
        for message in messages:
            found.append(message["Body"])
            fanout.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


@pytest.mark.parametrize("envelope", ["event", "cloudevents"])
async def test_every_road_brings_the_same_event(
    database: str, aws: LocalAws, fanout: Fanout, envelope: str
) -> None:
    settings = configured(aws, envelope=envelope)
    provision(settings)
    scene = Scene(database)
    scene.insert([f"o-{number}" for number in range(12)], payload='{"text": "grün"}')
    stored = [
        (str(id), "order.placed", aggregate_id, {"text": "grün"})
        for id, aggregate_id in scene.ask("SELECT id, aggregate_id FROM outbox_events")
    ]
    destinations = relay_destinations(settings)
    assert settings.relay is not None

    async with scene.relay(destinations, settings.relay):
        await eventually(lambda: not scene.pending())

    assert scene.dead() == {}
    for queue in ("raw", "wrapped", "bridged", "ordered.fifo"):
        assert sorted(opened(fanout, queue, 12)) == sorted(stored), queue
    memory = destinations["memory:test"]
    assert isinstance(memory, MemoryDestination)
    assert sorted(each.id for each in memory.delivered) == sorted(id for id, *_ in stored)


async def test_a_fifo_topic_keeps_the_order_of_an_aggregate(
    database: str, aws: LocalAws, fanout: Fanout
) -> None:
    settings = configured(aws, to=("sns:ordered-topic",))
    provision(settings)
    scene = Scene(database)
    for number in range(8):
        scene.insert(["a", "b", "c"], payload=json.dumps(number))
    aws.faults.fail_entries("PublishBatch", when="after", count=3, entries=[0])
    assert settings.relay is not None

    async with scene.relay(relay_destinations(settings), settings.relay):
        await eventually(lambda: not scene.pending())

    bodies = [json.loads(body) for body in taken(fanout, "ordered.fifo")]
    for aggregate in "abc":
        numbers = [body["payload"] for body in bodies if body["aggregate_id"] == aggregate]
        assert numbers == list(range(8))


REMOVALS: dict[str, Callable[[Fanout], Any]] = {
    "sns:order-topic": lambda fanout: fanout.sns.delete_topic(
        TopicArn="arn:aws:sns:us-east-1:000000000000:order-topic"
    ),
    "eventbridge:shop": lambda fanout: remove_bus(fanout),
}


@pytest.mark.parametrize("destination", REMOVALS)
async def test_nothing_is_lost_while_a_topic_or_a_bus_does_not_exist(
    database: str, aws: LocalAws, fanout: Fanout, destination: str
) -> None:
    settings = configured(aws, to=(destination,))
    provision(settings)
    REMOVALS[destination](fanout)
    scene = Scene(database)
    scene.insert([f"o-{number}" for number in range(12)])
    assert settings.relay is not None

    async with scene.relay(relay_destinations(settings), settings.relay) as relay:
        await eventually(lambda: relay.facts.count("paused"))
        assert len(scene.pending()) == 12
        provision(settings)
        await eventually(lambda: not scene.pending())

    assert scene.dead() == {}
    queue = "raw" if destination.startswith("sns") else "bridged"
    assert len(opened(fanout, queue, 12)) == 12


def remove_bus(fanout: Fanout) -> None:
    fanout.events.remove_targets(Rule="orders", EventBusName="shop", Ids=["bridged"])
    fanout.events.delete_rule(Name="orders", EventBusName="shop")
    fanout.events.delete_event_bus(Name="shop")


async def test_large_events_go_alone_and_what_is_too_large_dies_alone(
    database: str, aws: LocalAws, fanout: Fanout
) -> None:
    settings = configured(aws, to=("sns:order-topic", "eventbridge:shop"))
    provision(settings)
    scene = Scene(database)
    scene.insert([f"small-{number}" for number in range(5)])
    scene.insert(["l-1", "l-2", "l-3"], payload=json.dumps("x" * 200_000))
    (large,) = scene.insert(["huge"], payload=json.dumps("é" * 300_000, ensure_ascii=False))
    assert settings.relay is not None

    async with scene.relay(relay_destinations(settings), settings.relay):
        await eventually(lambda: not scene.pending())

    assert list(scene.dead()) == [large]
    assert "above the limit of 262144 bytes" in scene.dead()[large]
    for queue in ("raw", "bridged"):
        assert len(opened(fanout, queue, 8)) == 8
