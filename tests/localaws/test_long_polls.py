"""Long polls: what wakes them, and whom."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from outboxd.localaws.clock import Clock
from outboxd.localaws.server import local_aws
from tests.localaws.wire import Connection, Response


class Line:
    """A queue, a caller, and pollers that wait in the order in which they came."""

    def __init__(self, endpoint: str, clock: Clock, caller: Connection) -> None:
        self.endpoint = endpoint
        self.clock = clock
        self.caller = caller
        self.url = ""
        self._pollers: list[tuple[Connection, asyncio.Task[Response]]] = []

    async def create(self, name: str, **attributes: str) -> str:
        answer = await self.caller.call("CreateQueue", QueueName=name, Attributes=attributes)
        self.url = answer["QueueUrl"]
        return self.url

    async def send(self, body: str = "x", **members: object) -> None:
        await self.caller.call("SendMessage", QueueUrl=self.url, MessageBody=body, **members)

    async def receive(self, **members: object) -> list[dict[str, Any]]:
        answer = await self.caller.call(
            "ReceiveMessage", QueueUrl=self.url, MaxNumberOfMessages=10, **members
        )
        messages: list[dict[str, Any]] = answer.get("Messages", [])
        return messages

    async def poll(self, **members: object) -> "asyncio.Task[Response]":
        """Start a long poll of 20 s and be sure that it waits."""
        poller = await Connection.open(self.endpoint)
        asked = {"QueueUrl": self.url, "WaitTimeSeconds": 20, "MaxNumberOfMessages": 10}
        poller.send("ReceiveMessage", **asked | members)
        task = asyncio.create_task(poller.read())
        self._pollers.append((poller, task))
        await self.settled()
        assert not task.done()
        return task

    async def settled(self) -> None:
        """Everything sent so far has been handled, wake-ups included."""
        for _ in range(3):
            await self.caller.call("ListQueues")

    async def close(self) -> None:
        self.caller.close()
        for poller, task in self._pollers:
            task.cancel()
            await asyncio.wait([task])
            poller.close()

    async def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.settled()


async def bodies(poll: "asyncio.Task[Response]") -> list[str]:
    response = await asyncio.wait_for(poll, 10)
    assert response.status == 200
    return [message["Body"] for message in response.json.get("Messages", [])]


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    # Real time would make the waits end by themselves on a slow machine: only the test moves it.
    clock = Clock(monotonic=lambda: 0.0)
    async with local_aws(clock=clock) as endpoint:
        line = Line(endpoint, clock, await Connection.open(endpoint))
        await line.create("orders", VisibilityTimeout="30")
        yield line
        await line.close()


async def test_a_send_wakes_it(line: Line) -> None:
    poll = await line.poll()
    await line.send("now")

    assert await bodies(poll) == ["now"]


async def test_a_batch_wakes_it_once_with_all_of_it(line: Line) -> None:
    poll = await line.poll()
    entries = [{"Id": str(n), "MessageBody": str(n)} for n in range(10)]
    await line.caller.call("SendMessageBatch", QueueUrl=line.url, Entries=entries)

    assert len(await bodies(poll)) == 10


async def test_the_end_of_a_lease_wakes_it(line: Line) -> None:
    await line.send()
    await line.receive()
    await line.advance(15)
    poll = await line.poll()
    await line.advance(14)
    assert not poll.done()

    await line.advance(1)

    assert await bodies(poll) == ["x"]


async def test_the_end_of_a_delay_wakes_it(line: Line) -> None:
    poll = await line.poll()
    await line.send("later", DelaySeconds=10)
    await line.advance(9)
    assert not poll.done()

    await line.advance(1)

    assert await bodies(poll) == ["later"]


async def test_a_released_message_wakes_it(line: Line) -> None:
    await line.send()
    (message,) = await line.receive()
    poll = await line.poll()

    handle = message["ReceiptHandle"]
    await line.caller.call(
        "ChangeMessageVisibility", QueueUrl=line.url, ReceiptHandle=handle, VisibilityTimeout=0
    )

    assert await bodies(poll) == ["x"]


async def test_an_extended_lease_does_not(line: Line) -> None:
    await line.send()
    (message,) = await line.receive(VisibilityTimeout=5)
    poll = await line.poll()
    handle = message["ReceiptHandle"]
    await line.caller.call(
        "ChangeMessageVisibility", QueueUrl=line.url, ReceiptHandle=handle, VisibilityTimeout=15
    )

    await line.advance(14)
    assert not poll.done()
    await line.advance(1)
    assert await bodies(poll) == ["x"]


async def test_a_deleted_head_wakes_the_poll_for_its_followers(line: Line) -> None:
    await line.create("orders.fifo", FifoQueue="true", ContentBasedDeduplication="true")
    await line.send("a1", MessageGroupId="a")
    (head,) = await line.receive()
    await line.send("a2", MessageGroupId="a")
    poll = await line.poll()

    await line.caller.call("DeleteMessage", QueueUrl=line.url, ReceiptHandle=head["ReceiptHandle"])

    assert await bodies(poll) == ["a2"]


async def test_a_dead_letter_wakes_the_poll_of_its_queue(line: Line) -> None:
    dead = line.url
    policy = {
        "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:orders",
        "maxReceiveCount": 1,
    }
    await line.create("source", RedrivePolicy=json.dumps(policy))
    await line.send("poison")
    await line.receive(VisibilityTimeout=5)
    line.url = dead
    poll = await line.poll()

    # Nobody looks at the source any more: its lease ends by the clock alone.
    line.clock.advance(5)

    assert await bodies(poll) == ["poison"]


async def test_a_move_task_wakes_the_poll_of_its_destination_at_its_rate(line: Line) -> None:
    target = line.url
    dead = await line.create("dead")
    policy = {
        "deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:dead",
        "maxReceiveCount": 1,
    }
    await line.caller.call(
        "SetQueueAttributes", QueueUrl=target, Attributes={"RedrivePolicy": json.dumps(policy)}
    )
    line.url = dead
    await line.send("letter")
    await line.caller.call(
        "StartMessageMoveTask",
        SourceArn="arn:aws:sqs:us-east-1:000000000000:dead",
        DestinationArn="arn:aws:sqs:us-east-1:000000000000:orders",
        MaxNumberOfMessagesPerSecond=1,
    )
    line.url = target
    poll = await line.poll()

    line.clock.advance(1)

    assert await bodies(poll) == ["letter"]


async def test_the_wait_ends_empty(line: Line) -> None:
    poll = await line.poll(WaitTimeSeconds=20)
    short = await line.poll(WaitTimeSeconds=1)

    await line.advance(1)
    assert (await bodies(short), poll.done()) == ([], False)
    await line.advance(19)
    assert await bodies(poll) == []


async def test_the_wait_of_the_queue_is_the_default(line: Line) -> None:
    await line.caller.call(
        "SetQueueAttributes",
        QueueUrl=line.url,
        Attributes={"ReceiveMessageWaitTimeSeconds": "5"},
    )
    poll = await line.poll(WaitTimeSeconds=None)

    await line.advance(5)

    assert await bodies(poll) == []
    assert await line.receive(WaitTimeSeconds=0) == []


async def test_pollers_are_served_in_the_order_in_which_they_came(line: Line) -> None:
    polls = [await line.poll(MaxNumberOfMessages=1) for _ in range(3)]

    for body in ("1", "2"):
        await line.send(body)
    await line.settled()

    assert [await bodies(poll) for poll in polls[:2]] == [["1"], ["2"]]
    assert not polls[2].done()
    await line.send("3")
    assert await bodies(polls[2]) == ["3"]


async def test_one_message_goes_to_one_of_many(line: Line) -> None:
    polls = [await line.poll() for _ in range(10)]

    await line.send()
    await line.settled()

    assert [poll.done() for poll in polls].count(True) == 1


async def test_a_poll_uses_the_timeout_the_queue_has_when_the_message_comes(line: Line) -> None:
    poll = await line.poll()
    await line.caller.call(
        "SetQueueAttributes", QueueUrl=line.url, Attributes={"VisibilityTimeout": "5"}
    )
    await line.send()
    assert await bodies(poll) == ["x"]

    await line.advance(5)

    assert len(await line.receive()) == 1


async def test_polls_of_a_deleted_queue_are_told(line: Line) -> None:
    poll = await line.poll()

    await line.caller.call("DeleteQueue", QueueUrl=line.url)

    response = await asyncio.wait_for(poll, 10)
    assert (response.status, response.json["__type"]) == (
        400,
        "com.amazonaws.sqs#QueueDoesNotExist",
    )


async def test_hundreds_of_polls_do_not_slow_a_send_elsewhere(line: Line) -> None:
    polls = [await line.poll() for _ in range(200)]
    await line.create("elsewhere")

    await line.send("quick")

    assert [message["Body"] for message in await line.receive()] == ["quick"]
    assert not any(poll.done() for poll in polls)
    await line.advance(20)
    assert [await bodies(poll) for poll in polls] == [[]] * 200
