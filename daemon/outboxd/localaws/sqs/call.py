"""One call of an operation: what it is about, and what it may wait for."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from outboxd.localaws.faults import DeliveryFaults, NoFaults
from outboxd.localaws.sqs.arns import queue_name, queue_url
from outboxd.localaws.sqs.errors import missing_parameter
from outboxd.localaws.sqs.moves import MoveTasks
from outboxd.localaws.sqs.queue import Queue
from outboxd.localaws.sqs.registry import Registry


class Call(NamedTuple):
    """The state an operation works on, and the circumstances of this request."""

    registry: Registry
    moves: MoveTasks
    region: str
    base_url: str
    now: float
    deliveries: DeliveryFaults = NoFaults()

    def queue(self, url: str) -> Queue:
        """The queue of this URL. Raises MissingParameter, InvalidAddress or QueueDoesNotExist."""
        if not url:
            raise missing_parameter("QueueUrl")
        return self.registry.get(self.region, queue_name(url))

    def url(self, queue: Queue) -> str:
        return queue_url(self.base_url, queue.identity.name)


class Waiting(NamedTuple):
    """Instead of a response: try again whenever the queue changes, until there is one.

    `attempt` is given the time, returns None when there is still nothing, and raises AwsError to
    end the wait with a refusal. At `until` the answer is `otherwise`.
    """

    queue: Queue
    attempt: Callable[[float], msgspec.Struct | None]
    until: float
    otherwise: msgspec.Struct


Result = msgspec.Struct | Waiting | None
