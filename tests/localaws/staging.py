"""A stage for faults: a server with a script, a client that tries once, a queue for every test."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from types_boto3_sqs import SQSClient

from outboxd.testing import FaultScript, LocalAws, local_aws

PATIENT_SECONDS = 40.0
IMPATIENT_SECONDS = 0.3

_numbers = count(1)


class Stage(NamedTuple):
    """One queue of a server, and a client that tries everything once."""

    aws: LocalAws
    sqs: SQSClient
    name: str
    url: str

    @property
    def faults(self) -> FaultScript:
        return self.aws.faults

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body)

    def send_batch(self, *bodies: str) -> Any:
        entries: list[Any] = [
            {"Id": f"id-{number}", "MessageBody": body} for number, body in enumerate(bodies)
        ]
        return self.sqs.send_message_batch(QueueUrl=self.url, Entries=entries)

    def receive(self, most: int = 10, wait: int = 0) -> list[Any]:
        answer = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=most,
            WaitTimeSeconds=wait,
            VisibilityTimeout=60,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return list(answer.get("Messages", []))

    def bodies(self, most: int = 10) -> list[str]:
        return [message["Body"] for message in self.receive(most)]

    def delete(self, message: Any) -> None:
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def delete_batch(self, *messages: Any) -> Any:
        entries: list[Any] = [
            {"Id": f"id-{number}", "ReceiptHandle": message["ReceiptHandle"]}
            for number, message in enumerate(messages)
        ]
        return self.sqs.delete_message_batch(QueueUrl=self.url, Entries=entries)

    def hide(self, message: Any, seconds: int) -> None:
        self.sqs.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )

    def hide_batch(self, seconds: int, *messages: Any) -> Any:
        entries: list[Any] = [
            {
                "Id": f"id-{number}",
                "ReceiptHandle": message["ReceiptHandle"],
                "VisibilityTimeout": seconds,
            }
            for number, message in enumerate(messages)
        ]
        return self.sqs.change_message_visibility_batch(QueueUrl=self.url, Entries=entries)

    def depth(self) -> tuple[int, int]:
        """Visible, in flight."""
        depth = self.aws.queues()[self.name]
        return depth.visible, depth.in_flight


@contextmanager
def open_stage() -> Iterator[tuple[LocalAws, SQSClient]]:
    with local_aws() as aws, a_client(aws, PATIENT_SECONDS) as client:
        yield aws, client


@contextmanager
def impatient(stage: Stage) -> Iterator[Stage]:
    """The same stage, with a client that soon gives a call up."""
    with a_client(stage.aws, IMPATIENT_SECONDS) as client:
        yield stage._replace(sqs=client)


@contextmanager
def a_client(aws: LocalAws, read_timeout: float) -> Iterator[SQSClient]:
    config = Config(
        retries={"total_max_attempts": 1}, read_timeout=read_timeout, max_pool_connections=8
    )
    client = boto3.client("sqs", **aws.client_options, config=config)
    try:
        yield client
    finally:
        client.close()


def a_queue(aws: LocalAws, sqs: SQSClient, suffix: str = "", **attributes: str) -> Stage:
    """A stage with a queue of its own; other tests on the same server are not concerned."""
    name = f"queue-{next(_numbers)}{suffix}"
    if suffix:
        attributes |= {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    created = sqs.create_queue(QueueName=name, Attributes=attributes)  # type: ignore[arg-type]
    return Stage(aws, sqs, name, created["QueueUrl"])


def refused(act: Callable[..., Any], *arguments: Any) -> ClientError:
    with pytest.raises(ClientError) as caught:
        act(*arguments)
    return caught.value


def ids(entries: list[Any]) -> list[str]:
    return [entry["Id"] for entry in entries]
