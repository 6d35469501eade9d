"""A stage for SNS and EventBridge: clients of one server, and queues to look into."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.localaws.support import connection

ACCOUNT = "000000000000"

_numbers = count(1)


class Fanout(NamedTuple):
    """Clients that try everything once. Every name is a new one, so that tests share a server."""

    sqs: Any
    sns: Any
    events: Any

    def queue(self, suffix: str = "", **attributes: str) -> str:
        """The URL of a new queue, whose name no other stage gives."""
        if suffix:
            attributes = {"FifoQueue": "true", **attributes}
        created = self.sqs.create_queue(QueueName=a_name("fan") + suffix, Attributes=attributes)
        return str(created["QueueUrl"])

    def arn(self, url: str) -> str:
        asked = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(asked["Attributes"]["QueueArn"])

    def received(self, url: str, expected: int = 1) -> list[Any]:
        """The messages of a queue, with all their attributes; waits until so many are there."""
        found: list[Any] = []
        end = time.monotonic() + 10
        while len(found) < expected and time.monotonic() < end:
            found += self._receive(url)
        return found + self._receive(url)

    def bodies(self, url: str, expected: int = 1) -> list[str]:
        return [message["Body"] for message in self.received(url, expected)]

    def topic(self, suffix: str = "", **attributes: str) -> str:
        """The ARN of a new topic."""
        if suffix:
            attributes = {"FifoTopic": "true", **attributes}
        created = self.sns.create_topic(Name=a_name("topic") + suffix, Attributes=attributes)
        return str(created["TopicArn"])

    def subscribe(self, topic: str, url: str, **attributes: str) -> str:
        """The ARN of a new subscription of this queue."""
        created = self.sns.subscribe(
            TopicArn=topic,
            Protocol="sqs",
            Endpoint=self.arn(url),
            Attributes=attributes,
            ReturnSubscriptionArn=True,
        )
        return str(created["SubscriptionArn"])

    def raw(self, topic: str, suffix: str = "", **attributes: str) -> str:
        """The URL of a new queue with a raw subscription to the topic."""
        url = self.queue(suffix)
        self.subscribe(topic, url, RawMessageDelivery="true", **attributes)
        return url

    def bus(self) -> str:
        """The name of a new event bus."""
        name = a_name("bus")
        self.events.create_event_bus(Name=name)
        return name

    def rule(self, bus: str, pattern: object, *targets: dict[str, Any]) -> str:
        """The name of a new rule with these targets."""
        name = a_name("rule")
        self.events.put_rule(Name=name, EventBusName=bus, EventPattern=json.dumps(pattern))
        if targets:
            self.events.put_targets(Rule=name, EventBusName=bus, Targets=list(targets))
        return name

    def target(self, url: str, **members: Any) -> dict[str, Any]:
        return {"Id": "queue", "Arn": self.arn(url), **members}

    def put(self, bus: str, *details: object, **members: Any) -> Any:
        """Put one event for each detail, in one request."""
        return self.events.put_events(
            Entries=[an_entry(bus, detail, **members) for detail in details]
        )

    def _receive(self, url: str) -> list[Any]:
        answer = self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        return list(answer.get("Messages", []))


def a_name(kind: str) -> str:
    return f"{kind}-{next(_numbers)}"


def an_entry(bus: str | None = None, detail: object = None, **members: Any) -> dict[str, Any]:
    entry = {
        "Source": "shop",
        "DetailType": "OrderPlaced",
        "Detail": json.dumps({} if detail is None else detail),
        **members,
    }
    return entry if bus is None else {**entry, "EventBusName": bus}


def text(value: str) -> dict[str, str]:
    """A message attribute."""
    return {"DataType": "String", "StringValue": value}


def messages(*texts: str, **members: Any) -> list[Any]:
    """Entries of PublishBatch."""
    return [{"Id": f"id-{n}", "Message": each, **members} for n, each in enumerate(texts)]


def refusal(act: Callable[..., Any], **members: Any) -> tuple[str, int, str]:
    """Code, HTTP status and message of the error that a call must end in."""
    with pytest.raises(ClientError) as caught:
        act(**members)
    response: Any = caught.value.response
    error = response["Error"]
    return error["Code"], response["ResponseMetadata"]["HTTPStatusCode"], error["Message"]


@contextmanager
def open_fanout(endpoint: str, read_timeout: float = 30) -> Iterator[Fanout]:
    # Not as typed as it could be: the members of requests are dicts here, good ones and bad ones.
    make: Any = boto3.client
    options = connection(endpoint)
    options["config"] = options["config"].merge(Config(read_timeout=read_timeout))
    with ExitStack() as stack:
        clients: list[Any] = [
            stack.enter_context(closing(make(name, **options))) for name in ("sqs", "sns", "events")
        ]
        yield Fanout(*clients)
