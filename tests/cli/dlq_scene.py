"""A queue and its dead letters, for the commands that work on them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import boto3
import pytest

from outboxd.adapters.sqs.received import letter_entry
from outboxd.core.envelopes import open_envelope
from outboxd.core.letters import Letter, write_letter
from outboxd.core.message_plan import DeadHandler
from outboxd.core.messages import Attribute, ReceivedMessage
from outboxd.core.outcomes import DeadLetter, DeadReason
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

CONFIGURATION = """
[aws]
endpoint_url = "{endpoint}"
{aws}
[queues.orders]
queue_name = "{queue_name}"
[[queues.orders.handlers]]
event = "*"
handler = "shop:ship"
name = "ship"
inbox = "{inbox}"
"""

ERROR = "Reject: no such customer\n\x1b[2J" + "x" * 500


class Scene:
    """A configured queue and its dead letters, seen from the outside."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.endpoint = endpoint
        self.folder = folder
        self.sqs: SQSClient = boto3.client(
            "sqs",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        self.configure()

    def configure(self, aws: str = "", queue_name: str = "orders", inbox: str = "off") -> None:
        text = CONFIGURATION.format(
            endpoint=self.endpoint, aws=aws, queue_name=queue_name, inbox=inbox
        )
        (self.folder / "outboxd.toml").write_text(text)

    def create(self) -> None:
        for name in ("orders", "orders-dlq"):
            self.sqs.create_queue(QueueName=name)

    def bury(self, *numbers: int, reason: DeadReason = DeadReason.REJECTED) -> list[str]:
        """Dead letters of these events; the ids of the letters."""
        return [self.send("orders-dlq", a_letter(number, reason)) for number in numbers]

    def send(self, queue: str, letter: Letter) -> str:
        url = self.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        answer = self.sqs.send_message_batch(QueueUrl=url, Entries=[letter_entry(0, letter)])
        return answer["Successful"][0]["MessageId"]

    def messages(self, queue: str) -> list[Any]:
        """All visible messages of a queue, which are visible again afterwards."""
        url = self.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        found: list[Any] = []
        while messages := self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=60,
            MessageAttributeNames=["All"],
        ).get("Messages"):
            found += messages
        for message in found:
            self.sqs.change_message_visibility(
                QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )
        return found

    def events(self, queue: str) -> list[int]:
        """The numbers of the events of the visible messages."""
        return sorted(UUID(json.loads(m["Body"])["id"]).int for m in self.messages(queue))

    @property
    def where(self) -> tuple[list[int], list[int]]:
        """The events in the queue, and those in its dead-letter queue."""
        return self.events("orders"), self.events("orders-dlq")


def event_id(number: int) -> str:
    return str(UUID(int=number))


def a_letter(
    number: int,
    reason: DeadReason = DeadReason.REJECTED,
    type: str = "order.paid",
    handler: str = "ship",
) -> Letter:
    message = ReceivedMessage(
        message_id=f"original-{number}",
        receipt_handle="",
        receive_count=4,
        sent_at=1_700_000_000.0,
        body=json.dumps({"id": event_id(number), "type": type, "payload": {}}),
        attributes={"event_type": Attribute("String", type)},
    )
    cause = DeadLetter(reason, ERROR)
    dead = [DeadHandler(handler, cause, 3)]
    return write_letter("orders", message, open_envelope(message), cause, dead, 1.7e9)


@pytest.fixture
def scene(aws_endpoint: str, folder: Path) -> Iterator[Scene]:
    """On each of the servers that there are."""
    scene = Scene(aws_endpoint, folder)
    scene.create()
    yield scene
    scene.sqs.close()


@pytest.fixture
def faulty(aws: LocalAws, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """On our own server, which fails on cue."""
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    # A short poll of this server finds everything, and a second is long for so many tests.
    monkeypatch.setattr("outboxd.adapters.sqs.letter_scan.WAIT_SECONDS", 0)
    scene = Scene(aws.endpoint_url, folder)
    scene.create()
    yield scene
    scene.sqs.close()


def ids(letters: Sequence[dict[str, Any]]) -> set[str]:
    return {letter["message_id"] for letter in letters}
