"""What a server knows of the benchmark's queue, cheap enough to be asked fifty times a second."""

import http.client
from typing import Any, Protocol
from urllib.parse import urlsplit

import boto3
import msgspec

NOT_THE_WORK = frozenset({"GetQueueUrl", "CreateQueue", "SetQueueAttributes"})
"""Calls that are made once, and not for messages."""

HOLD_SECONDS = 900
"""The longest delay that a queue may have, so nobody's start-up outlasts it."""


class Depth(msgspec.Struct, frozen=True):
    """Messages by state; a message is in one of them until it is deleted."""

    name: str
    visible: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed


class QueueView(Protocol):
    """A server's own view of one queue."""

    def depth(self) -> Depth:
        """The counts at this moment."""

    def calls(self) -> dict[str, int]:
        """How often each operation was called so far; empty where that is not counted."""

    def hold(self) -> None:
        """Have nothing delivered of what is sent from now on, where there is a way to."""

    def release(self) -> None:
        """Deliver what is held, at once."""

    def __enter__(self) -> "QueueView": ...

    def __exit__(self, *_: object) -> None: ...


class _Queues(msgspec.Struct):
    queues: list[Depth]


class _Call(msgspec.Struct):
    service: str
    operation: str
    queue: str | None
    count: int


class _Calls(msgspec.Struct):
    calls: list[_Call]


class LocalSqs:
    """A local AWS's view."""

    def __init__(self, endpoint: str, queue: str) -> None:
        self._endpoint = endpoint
        self._queue = queue
        self._connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=10)

    def depth(self) -> Depth:
        answer = msgspec.json.decode(self._ask("GET", "queues"), type=_Queues)
        return next(queue for queue in answer.queues if queue.name == self._queue)

    def calls(self) -> dict[str, int]:
        answer = msgspec.json.decode(self._ask("GET", "calls"), type=_Calls)
        return {
            call.operation: call.count
            for call in answer.calls
            if call.queue == self._queue and call.operation not in NOT_THE_WORK
        }

    def calls_of_all(self) -> int:
        """How many calls were made so far, of any operation on any queue."""
        answer = msgspec.json.decode(self._ask("GET", "calls"), type=_Calls)
        return sum(call.count for call in answer.calls)

    def hold(self) -> None:
        delay_queue(self._endpoint, self._queue, HOLD_SECONDS)

    def release(self) -> None:
        """The delay is over because it is that much later, for this server."""
        self._ask("POST", "clock", msgspec.json.encode({"advance_seconds": HOLD_SECONDS}))

    def slow(self, seconds: float) -> None:
        """Have every call that moves messages take so much longer."""
        script = {
            "fault": "slow",
            "seconds": seconds,
            "operations": ["SendMessage", "SendMessageBatch"],
            "count": None,
        }
        self._ask("POST", "faults", msgspec.json.encode(script))

    def __enter__(self) -> "LocalSqs":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _ask(self, method: str, page: str, body: bytes | None = None) -> bytes:
        self._connection.request(method, f"/_localaws/{page}", body)
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status < 300, content
        return content


def delay_queue(endpoint: str, queue: str, seconds: int) -> None:
    """Have the queue deliver what is sent from now on so much later."""
    client: Any = boto3.session.Session().client(
        "sqs", region_name="us-east-1", endpoint_url=endpoint
    )
    url = client.get_queue_url(QueueName=queue)["QueueUrl"]
    client.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": str(seconds)})
    client.close()
