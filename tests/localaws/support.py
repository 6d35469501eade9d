"""What the tests of localaws share: an engine on a standing clock, and a server to talk to."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import boto3
from botocore.config import Config
from types_boto3_sqs import SQSClient

from outboxd.localaws.clock import Clock
from outboxd.localaws.server import LocalAws
from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.call import Call
from outboxd.localaws.sqs.message import Delivery
from outboxd.localaws.sqs.moves import MoveTasks
from outboxd.localaws.sqs.operations import queues, send
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.registry import Registry

REGION = "us-east-1"
START = 1_700_000_000.0


class Engine:
    """Queues without a server, on a clock that only the test moves."""

    def __init__(self) -> None:
        self.now = START
        self.registry = Registry()
        self.moves = MoveTasks(self.registry)

    @property
    def call(self) -> Call:
        return Call(self.registry, self.moves, REGION, "http://aws", self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def queue(self, name: str = "orders", **attributes: object) -> Queue:
        """A queue with these AWS attributes; a name that ends with .fifo makes it a FIFO queue."""
        texts = {key: str(value) for key, value in attributes.items()}
        if name.endswith(".fifo"):
            texts.setdefault("FifoQueue", "true")
            texts.setdefault("ContentBasedDeduplication", "true")
        queues.create_queue(self.call, requests.CreateQueue(name, texts))
        return self.registry.get(REGION, name)

    def queue_with_dead_letters(
        self, max_receive_count: int, suffix: str = ""
    ) -> tuple[Queue, Queue]:
        """A queue and its dead-letter queue; messages stay hidden for 30 s after a receive."""
        dead = self.queue(f"dead{suffix}")
        policy = redrive_policy(dead, max_receive_count)
        return self.queue(f"orders{suffix}", RedrivePolicy=policy), dead

    def send(self, queue: Queue, body: str = "x", **members: Any) -> responses.Sent:
        request = requests.SendMessage(queue_url=queue.identity.name, message_body=body, **members)
        return send.send_message(self.call, request)

    def send_all(self, queue: Queue, *bodies: str) -> None:
        """Send bodies; in a FIFO queue the first letter of each is its message group."""
        for body in bodies:
            group = body[0] if queue.settings.fifo else None
            self.send(queue, body, message_group_id=group)

    def receive(
        self, queue: Queue, maximum: int = 10, visibility: float | None = None
    ) -> list[Delivery]:
        seconds = queue.settings.visibility_seconds if visibility is None else visibility
        return queue.receive(maximum, seconds, self.now)

    def receive_one(self, queue: Queue, visibility: float | None = None) -> Delivery:
        (delivery,) = self.receive(queue, 1, visibility)
        return delivery

    def bodies(self, queue: Queue, maximum: int = 10, visibility: float | None = None) -> list[str]:
        return [d.message.body for d in self.receive(queue, maximum, visibility)]

    def delete(self, queue: Queue, *deliveries: Delivery) -> None:
        for delivery in deliveries:
            queue.delete(delivery.handle, self.now)

    def hide(self, queue: Queue, delivery: Delivery, seconds: int) -> None:
        queue.change_visibility(delivery.handle, seconds, self.now)

    def depth(self, queue: Queue) -> tuple[int, int, int]:
        """Visible, in flight, delayed."""
        visible, in_flight, delayed = queue.depth(self.now)
        return visible, in_flight, delayed


def redrive_policy(dead: Queue, max_receive_count: int) -> str:
    return json.dumps(
        {"deadLetterTargetArn": dead.identity.arn, "maxReceiveCount": max_receive_count}
    )


class Aws(NamedTuple):
    """A running server, seen from the outside."""

    endpoint: str
    sqs: SQSClient

    def advance(self, seconds: float) -> None:
        self.control("POST", "clock", {"advance_seconds": seconds})

    def control(self, method: str, path: str, content: object = None) -> Any:
        body = None if content is None else json.dumps(content).encode()
        with urlopen(Request(f"{self.endpoint}/_localaws/{path}", body, method=method)) as answer:
            return json.load(answer)


def connection(endpoint: str, region: str = REGION) -> dict[str, Any]:
    """What boto3.client needs to reach a local server; one attempt, so that tests see it fail."""
    return {
        "endpoint_url": endpoint,
        "region_name": region,
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "config": Config(retries={"total_max_attempts": 1}, read_timeout=30),
    }


@contextmanager
def running_aws() -> Iterator[Aws]:
    """A server in a thread of its own, for clients that block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = LocalAws(Clock())
    endpoint = asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    client = boto3.client("sqs", **connection(endpoint))
    try:
        yield Aws(endpoint, client)
    finally:
        client.close()
        asyncio.run_coroutine_threadsafe(server.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
