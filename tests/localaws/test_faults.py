"""The hook for faults: before, after and instead of an operation."""

import asyncio

import pytest

from outboxd.localaws.exchange import Hangup, Outcome
from outboxd.localaws.faults import Fault, Proceed, Target
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.server import local_aws
from tests.localaws.wire import Connection, encoded


class Script:
    """Claims every call of one operation, and writes down what it was asked."""

    active = True

    def __init__(self, operation: str, fault: Fault) -> None:
        self.operation = operation
        self.fault = fault
        self.asked: list[Target] = []

    def for_call(self, target: Target, request: Request) -> Fault | None:
        self.asked.append(target)
        return self.fault if target.operation == self.operation else None


async def depth(connection: Connection) -> str:
    name = "ApproximateNumberOfMessages"
    answer = await connection.call("GetQueueAttributes", QueueUrl="orders", AttributeNames=[name])
    text = answer["Attributes"][name]
    assert isinstance(text, str)
    return text


async def test_it_is_told_service_operation_region_and_queue() -> None:
    async def proceed_only(request: Request, proceed: Proceed) -> Outcome:
        return await proceed()

    script = Script("SendMessage", proceed_only)
    async with local_aws(faults=script) as endpoint:
        connection = await Connection.open(endpoint)
        await connection.call("CreateQueue", QueueName="orders")
        await connection.call("SendMessage", QueueUrl="orders", MessageBody="x")
        await connection.call("ListQueues")
        assert await depth(connection) == "1"
        connection.close()

    assert [(target.operation, target.queue) for target in script.asked] == [
        ("CreateQueue", "orders"),
        ("SendMessage", "orders"),
        ("ListQueues", None),
        ("GetQueueAttributes", "orders"),
    ]
    assert {(target.service, target.region) for target in script.asked} == {("sqs", "us-east-1")}


async def test_a_request_that_cannot_be_read_is_addressed_by_its_operation_alone() -> None:
    async def proceed_only(request: Request, proceed: Proceed) -> Outcome:
        return await proceed()

    script = Script("SendMessage", proceed_only)
    async with local_aws(faults=script) as endpoint:
        connection = await Connection.open(endpoint)
        connection.writer.write(encoded("AmazonSQS.SendMessage", b"{"))
        assert (await connection.read()).status == 400
        connection.close()

    assert script.asked == [Target("sqs", "SendMessage", "us-east-1", None)]


async def test_it_can_answer_in_place_of_the_operation() -> None:
    async def throttle(request: Request, proceed: Proceed) -> Outcome:
        return Answer(403, "application/x-amz-json-1.0", b"{}")

    async with local_aws(faults=Script("SendMessage", throttle)) as endpoint:
        connection = await Connection.open(endpoint)
        await connection.call("CreateQueue", QueueName="orders")
        connection.send("SendMessage", QueueUrl="orders", MessageBody="x")

        assert (await connection.read()).status == 403
        assert await depth(connection) == "0"
        connection.close()


@pytest.mark.parametrize("broken", [False, True])
async def test_it_can_hang_up_after_the_operation(broken: bool) -> None:
    async def reset(request: Request, proceed: Proceed) -> Outcome:
        await proceed()
        if broken:
            raise RuntimeError("a fault with a fault")
        return Hangup()

    async with local_aws(faults=Script("SendMessage", reset)) as endpoint:
        connection, other = await Connection.open(endpoint), await Connection.open(endpoint)
        await connection.call("CreateQueue", QueueName="orders")
        connection.send("SendMessage", QueueUrl="orders", MessageBody="x")

        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await connection.read()
        assert await depth(other) == "1"
        connection.close()
        other.close()


async def test_a_client_that_leaves_a_held_long_poll_takes_no_message() -> None:
    held = asyncio.Event()

    async def proceed_later(request: Request, proceed: Proceed) -> Outcome:
        held.set()
        return await proceed()

    async with local_aws(faults=Script("ReceiveMessage", proceed_later)) as endpoint:
        connection, other = await Connection.open(endpoint), await Connection.open(endpoint)
        await other.call("CreateQueue", QueueName="orders")
        connection.send("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20)
        await asyncio.wait_for(held.wait(), 10)
        await other.call("ListQueues")

        connection.close()
        await other.call("ListQueues")
        await other.call("SendMessage", QueueUrl="orders", MessageBody="x")
        await other.call("ListQueues")

        assert await depth(other) == "1"
        other.close()


async def test_a_held_long_poll_is_answered() -> None:
    async def proceed_only(request: Request, proceed: Proceed) -> Outcome:
        return await proceed()

    async with local_aws(faults=Script("ReceiveMessage", proceed_only)) as endpoint:
        connection, other = await Connection.open(endpoint), await Connection.open(endpoint)
        await other.call("CreateQueue", QueueName="orders")
        connection.send("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20)
        await other.call("ListQueues")

        await other.call("SendMessage", QueueUrl="orders", MessageBody="x")

        response = await asyncio.wait_for(connection.read(), 10)
        assert response.json["Messages"][0]["Body"] == "x"
        connection.close()
        other.close()
