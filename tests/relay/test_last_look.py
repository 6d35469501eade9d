"""A relay that is frozen while a call is being prepared, and wakes up when its lease is over."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from outboxd.adapters.aws.last_look import last_look, looking_before_sending
from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.publisher import SqsDestination
from outboxd.core.clock import boottime
from outboxd.core.settings import AwsSettings
from outboxd.testing import LocalAws, local_aws
from tests.relay.scene import Gate, Scene, eventually, quick

UNHURRIED = quick(renew_seconds=15.0, lease_seconds=60.0)
"""The frozen one does not renew: nothing of a frozen process runs."""


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAws]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with local_aws() as aws:
        yield aws


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


def client_of(aws: LocalAws, attempts: int = 1) -> Any:
    return sqs_client(AwsSettings(endpoint_url=aws.endpoint_url), connections=4, attempts=attempts)


async def test_a_relay_that_is_frozen_while_its_call_is_signed_sends_nothing_afterwards(
    scene: Scene, aws: LocalAws
) -> None:
    client, jump, signing = client_of(aws), [0.0], Gate()
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    frozen, successor = client_of(aws), client_of(aws)
    frozen.meta.events.register(
        "before-sign.sqs.SendMessageBatch", lambda **_: signing.pass_through()
    )
    scene.insert(["order-1"])

    async with scene.relay(
        {"sqs:orders": SqsDestination(frozen, "orders", 1.0)},
        UNHURRIED,
        clock=lambda: boottime() + jump[0],
    ) as first:
        await eventually(lambda: signing.waiting == 1)
        jump[0] = 120.0
        signing.open()
        await eventually(lambda: first.progress.in_flight == 0)
        assert depth(client, url) == 0
        assert scene.ask("SELECT attempts, last_error FROM outbox_events") == [(0, None)]
        assert len(scene.pending()) == 1
        assert first.facts.count("paused") == first.facts.count("failed") == 0

        async with scene.relay(
            {"sqs:orders": SqsDestination(successor, "orders", 1.0)},
            predecessors=[first.identity],
        ):
            await eventually(lambda: not scene.pending())

    assert depth(client, url) == 1


async def test_a_relay_that_wakes_up_after_its_successor_has_published_repeats_nothing(
    scene: Scene, aws: LocalAws
) -> None:
    client, jump, signing = client_of(aws), [0.0], Gate()
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    frozen, successor = client_of(aws), client_of(aws)
    frozen.meta.events.register(
        "before-sign.sqs.SendMessageBatch", lambda **_: signing.pass_through()
    )
    scene.insert(["order-1"])

    async with scene.relay(
        {"sqs:orders": SqsDestination(frozen, "orders", 1.0)},
        UNHURRIED,
        clock=lambda: boottime() + jump[0],
    ) as first:
        await eventually(lambda: signing.waiting == 1)
        async with scene.relay(
            {"sqs:orders": SqsDestination(successor, "orders", 1.0)},
            predecessors=[first.identity],
        ):
            await eventually(lambda: not scene.pending())
            jump[0] = 120.0
            signing.open()
            await eventually(lambda: first.progress.in_flight == 0)

    assert depth(client, url) == 1


def test_each_try_of_the_sdk_is_looked_at(aws: LocalAws) -> None:
    client = client_of(aws, attempts=2)
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    looking_before_sending(client)
    aws.faults.server_error("SendMessage", queue="orders")
    looks: list[str] = []

    with last_look(lambda: looks.append("sending")):
        client.send_message(QueueUrl=url, MessageBody="x")

    assert looks == ["sending", "sending"]
    assert depth(client, url) == 1


def test_a_look_is_for_the_calls_of_its_own_thread(aws: LocalAws) -> None:
    """The client is shared, and so is being one of several destinations on it."""
    client = client_of(aws)
    looking_before_sending(client)
    looking_before_sending(client)
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    looks: list[str] = []

    def send(body: str) -> None:
        with last_look(lambda: looks.append(body)):
            meeting.wait(10.0)
            client.send_message(QueueUrl=url, MessageBody=body)

    meeting = threading.Barrier(3)
    threads = [threading.Thread(target=send, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    meeting.wait(10.0)
    client.send_message(QueueUrl=url, MessageBody="c")
    for thread in threads:
        thread.join()

    assert sorted(looks) == ["a", "b"]
    assert depth(client, url) == 3


def depth(client: Any, url: str) -> int:
    answer = client.get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
    )
    return int(answer["Attributes"]["ApproximateNumberOfMessages"])
