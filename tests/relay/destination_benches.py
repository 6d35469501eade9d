"""Every kind of destination with its far end: where what it accepted arrives, and in what form."""

from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from outboxd.adapters.eventbridge.publisher import EventBridgeDestination
from outboxd.adapters.log_destination import LogDestination
from outboxd.adapters.memory_destination import MemoryDestination
from outboxd.adapters.sns.publisher import SnsDestination
from outboxd.adapters.sqs.publisher import SqsDestination
from outboxd.core.destinations import EventBridgeTarget, SnsTarget
from outboxd.core.messages import Attribute, ReceivedMessage
from outboxd.core.outbox import StoredEvent
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Destination, Entry
from tests.localaws.fanout import ACCOUNT, Fanout

SOURCE = "shop.orders"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALL_SECONDS = 1.0

_numbers = count(1)


class Bench(msgspec.Struct, kw_only=True):
    """A destination, and what a test may do to its far end."""

    kind: str
    destination: Destination
    arrived: Callable[[int], list[ReceivedMessage]]
    """At least so many messages, as a consumer of the queue behind it gets them."""
    operation: str = ""
    name: str = ""
    create: Callable[[], Any] = lambda: None
    delete: Callable[[], Any] = lambda: None
    advance: Callable[[float], None] = lambda seconds: None

    def entries(self, *events: StoredEvent, envelope: Envelope = "event") -> list[Entry]:
        prepared = [self.destination.prepare(event, envelope) for event in events]
        assert all(isinstance(each, Entry) for each in prepared), prepared
        return [each for each in prepared if isinstance(each, Entry)]


def an_event(number: int = 1, payload: str = '{"amount": 1}', **changes: Any) -> StoredEvent:
    values: dict[str, Any] = {
        "key": number,
        "seq": number,
        "id": f"0194d0c0-0000-7000-8000-{number:012}",
        "event_type": "order.placed",
        "aggregate_type": "order",
        "aggregate_id": f"o-{number}",
        "payload": payload,
        "traceparent": TRACE,
        "occurred_at": "2026-01-01T00:00:00.123456Z",
        "born_at": 0.0,
        "attempts": 0,
        "due_at": 0.0,
        "delivered_to": None,
    }
    return StoredEvent(**{**values, **changes})


def still_ours(seconds: float) -> bool:
    """A lease that nothing ends."""
    return True


def sqs_bench(fanout: Fanout, suffix: str = "", fair: bool = False) -> Bench:
    name = a_name("queue") + suffix
    attributes = {"FifoQueue": "true"} if suffix else {}
    urls: list[str] = []

    def create() -> None:
        urls[:] = [fanout.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]]

    return Bench(
        kind=f"sqs{suffix}",
        destination=SqsDestination(fanout.sqs, name, CALL_SECONDS, fair_groups=fair),
        arrived=lambda least: received(fanout, urls[0], least),
        operation="SendMessageBatch",
        name=name,
        create=create,
        delete=lambda: fanout.sqs.delete_queue(QueueUrl=urls[0]),
    )


def sns_bench(
    fanout: Fanout, suffix: str = "", raw: bool = True, by_arn: bool = False, fair: bool = False
) -> Bench:
    name = a_name("topic") + suffix
    url = fanout.queue(suffix)
    attributes = {"FifoTopic": "true"} if suffix else {}
    topics: list[str] = []

    def create() -> None:
        topics[:] = [fanout.sns.create_topic(Name=name, Attributes=attributes)["TopicArn"]]
        fanout.subscribe(topics[0], url, RawMessageDelivery="true" if raw else "false")

    target = SnsTarget(name, f"arn:aws:sns:us-east-1:{ACCOUNT}:{name}" if by_arn else None, fair)
    return Bench(
        kind=f"sns{suffix}",
        destination=SnsDestination(fanout.sns, target, CALL_SECONDS),
        arrived=lambda least: received(fanout, url, least),
        operation="PublishBatch",
        name=name,
        create=create,
        delete=lambda: fanout.sns.delete_topic(TopicArn=topics[0]),
    )


def eventbridge_bench(fanout: Fanout) -> Bench:
    name, url = a_name("bus"), fanout.queue()
    seconds = [0.0]

    def create() -> None:
        fanout.events.create_event_bus(Name=name)
        rules.append(fanout.rule(name, {"source": [SOURCE]}, fanout.target(url)))

    def delete() -> None:
        fanout.events.remove_targets(Rule=rules[-1], EventBusName=name, Ids=["queue"])
        fanout.events.delete_rule(Name=rules.pop(), EventBusName=name)
        fanout.events.delete_event_bus(Name=name)

    def advance(by: float) -> None:
        seconds[0] += by

    rules: list[str] = []
    return Bench(
        kind="eventbridge",
        destination=EventBridgeDestination(
            fanout.events,
            EventBridgeTarget(name, SOURCE),
            CALL_SECONDS,
            clock=lambda: seconds[0],
        ),
        arrived=lambda least: received(fanout, url, least),
        operation="PutEvents",
        name=name,
        create=create,
        delete=delete,
        advance=advance,
    )


def memory_bench() -> Bench:
    destination = MemoryDestination()
    return Bench(
        kind="memory",
        destination=destination,
        arrived=lambda _: [message(each.body, each.attributes) for each in destination.delivered],
    )


def log_bench(lines: Callable[[], list[Any]]) -> Bench:
    return Bench(
        kind="log",
        destination=LogDestination("log:dev"),
        arrived=lambda _: [message(line.body, {"traceparent": TRACE}) for line in lines()],
    )


def received(fanout: Fanout, url: str, least: int) -> list[ReceivedMessage]:
    return [
        message(
            each["Body"],
            {
                name: value["StringValue"]
                for name, value in each.get("MessageAttributes", {}).items()
            },
            each["Attributes"].get("MessageGroupId"),
        )
        for each in fanout.received(url, least)
    ]


def message(body: str, attributes: dict[str, str], group: str | None = None) -> ReceivedMessage:
    return ReceivedMessage(
        message_id="m",
        receipt_handle="r",
        receive_count=1,
        sent_at=0.0,
        body=body,
        attributes={name: Attribute("String", value) for name, value in attributes.items()},
        group_id=group,
    )


def a_name(kind: str) -> str:
    return f"{kind}-of-relay-{next(_numbers)}"
