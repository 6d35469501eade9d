"""Connections to a running server: keep-alive, pipelining, clients that leave."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from outboxd.localaws.clock import Clock
from outboxd.localaws.connection import Connection as ServerConnection
from outboxd.localaws.exchange import Client, Pending, Reply
from outboxd.localaws.http1 import Answer, Request
from outboxd.localaws.server import local_aws, serve
from outboxd.localaws.sqs.call import Waiting
from outboxd.localaws.sqs.polls import QueuePolls
from outboxd.localaws.sqs.responses import Messages
from tests.localaws.support import Engine
from tests.localaws.wire import Connection, encoded


class Server(NamedTuple):
    endpoint: str
    clock: Clock


class AlwaysThere:
    def gone(self) -> bool:
        return False


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    clock = Clock()
    async with local_aws(clock=clock) as endpoint:
        yield Server(endpoint, clock)


async def queue_url(connection: Connection, name: str = "orders") -> str:
    url = (await connection.call("CreateQueue", QueueName=name))["QueueUrl"]
    assert isinstance(url, str)
    return url


async def counts(connection: Connection, url: str) -> list[str]:
    """Visible, in flight."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = await connection.call("GetQueueAttributes", QueueUrl=url, AttributeNames=names)
    return [answer["Attributes"][name] for name in names]


async def test_urls_are_made_from_the_host_the_client_used(server: Server) -> None:
    connection = await Connection.open(server.endpoint)

    assert await queue_url(connection) == "http://aws.test:1234/000000000000/orders"
    connection.close()


async def test_pipelined_requests_are_answered_in_turn_also_behind_a_long_poll(
    server: Server,
) -> None:
    connection, other = (
        await Connection.open(server.endpoint),
        await Connection.open(server.endpoint),
    )
    url = await queue_url(connection)
    connection.send("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
    connection.send("GetQueueUrl", QueueName="orders")

    await other.call("SendMessage", QueueUrl=url, MessageBody="x")

    assert (await connection.read()).json["Messages"][0]["Body"] == "x"
    assert (await connection.read()).json == {"QueueUrl": url}
    connection.close()
    other.close()


async def test_a_client_that_asks_to_close_is_answered_and_closed(server: Server) -> None:
    connection = await Connection.open(server.endpoint)
    connection.writer.write(encoded("AmazonSQS.ListQueues", b"{}", "Connection: close"))
    connection.send("ListQueues")

    assert (await connection.read()).status == 200
    assert await connection.at_end()
    connection.close()


async def test_nonsense_is_answered_and_closed(server: Server) -> None:
    connection = await Connection.open(server.endpoint)
    connection.writer.write(b"nonsense\r\n\r\n")

    assert (await connection.read()).status == 400
    assert await connection.at_end()
    connection.close()


@pytest.mark.parametrize("farewell", ["close", "reset", "half-close"])
async def test_a_client_that_left_its_long_poll_takes_no_message(
    server: Server, farewell: str
) -> None:
    poller, other = await Connection.open(server.endpoint), await Connection.open(server.endpoint)
    url = await queue_url(other)
    poller.send("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
    await other.call("ListQueues")  # The poll has been read by now.

    sock = poller.writer.get_extra_info("socket")
    match farewell:
        case "close":
            poller.close()
        case "reset":
            # A reset instead of a farewell, as from a killed process with unread data.
            raw = socket.socket(fileno=sock.fileno())
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            raw.detach()
            poller.writer.transport.abort()
        case _:
            poller.writer.write_eof()
    await other.call("SendMessage", QueueUrl=url, MessageBody="x")
    await other.call("ListQueues")

    assert await counts(other, url) == ["1", "0"]
    poller.close()
    other.close()


async def test_a_farewell_that_arrives_together_with_the_waking_send_counts(
    server: Server,
) -> None:
    """Both are ready in one turn of the event loop, the send first."""
    for _ in range(20):
        other, poller = (
            await Connection.open(server.endpoint),
            await Connection.open(server.endpoint),
        )
        url = await queue_url(other)
        poller.send("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        await other.call("ListQueues")

        # Written and closed below the event loop, which is the server's own: it sees both at once.
        body = f'{{"QueueUrl": "{url}", "MessageBody": "x"}}'.encode()
        send = encoded("AmazonSQS.SendMessage", body)
        duplicate = socket.socket(fileno=socket.dup(other.writer.get_extra_info("socket").fileno()))
        duplicate.send(send)
        duplicate.close()
        leaving = socket.socket(fileno=socket.dup(poller.writer.get_extra_info("socket").fileno()))
        leaving.shutdown(socket.SHUT_RDWR)
        leaving.close()

        assert (await other.read()).status == 200
        await other.call("ListQueues")
        assert await counts(other, url) == ["1", "0"]
        received = await other.call("ReceiveMessage", QueueUrl=url)
        handle = received["Messages"][0]["ReceiptHandle"]
        await other.call("DeleteMessage", QueueUrl=url, ReceiptHandle=handle)
        poller.close()
        other.close()


async def test_what_is_pending_for_a_client_that_left_is_abandoned() -> None:
    abandoned = asyncio.Event()
    pending = Pending(abandoned.set)
    listening = await asyncio.get_running_loop().create_server(
        lambda: ServerConnection(lambda request, client: pending, set()), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    client = await Connection.open(f"http://127.0.0.1:{port}")
    client.send("ReceiveMessage")
    await client.writer.drain()

    client.close()

    await asyncio.wait_for(abandoned.wait(), 10)
    assert pending.ended
    pending.finish(Answer(200, "text/plain", b"too late"))
    listening.close()


async def test_an_abandoned_poll_leaves_nothing_behind(engine: Engine) -> None:
    queue = engine.queue()
    polls = QueuePolls(queue, Clock())
    nothing = Answer(200, "text/plain", b"")
    waiting = Waiting(queue, lambda now: None, engine.now + 20, Messages())

    polls.add(waiting, lambda now: None, nothing, AlwaysThere()).abandon()

    assert len(polls) == 0
    polls.close()


async def test_a_broken_handler_is_answered_with_500_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(request: Request, client: Client) -> Reply:
        raise RuntimeError("a bug")

    listening = await asyncio.get_running_loop().create_server(
        lambda: ServerConnection(broken, set()), "127.0.0.1", 0
    )
    port = listening.sockets[0].getsockname()[1]
    client = await Connection.open(f"http://127.0.0.1:{port}")
    client.send("ReceiveMessage")

    assert (await client.read()).status == 500
    assert "a bug" in caplog.text
    client.close()
    listening.close()


async def test_a_message_for_a_client_that_left_goes_to_the_next_in_line(server: Server) -> None:
    gone, waiting, other = [await Connection.open(server.endpoint) for _ in range(3)]
    url = await queue_url(other)
    for poller in (gone, waiting):
        poller.send("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        await other.call("ListQueues")

    gone.close()
    await other.call("SendMessage", QueueUrl=url, MessageBody="x")

    assert (await asyncio.wait_for(waiting.read(), 10)).json["Messages"][0]["Body"] == "x"
    waiting.close()
    other.close()


async def test_a_client_that_asks_without_end_while_it_waits_is_cut_off(server: Server) -> None:
    connection, other = (
        await Connection.open(server.endpoint),
        await Connection.open(server.endpoint),
    )
    url = await queue_url(other)
    connection.send("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
    for _ in range(12):
        connection.send("SendMessage", QueueUrl=url, MessageBody="x" * 1_000_000)

    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
        await asyncio.wait_for(connection.read(), 10)
    assert await counts(other, url) == ["0", "0"]
    connection.close()
    other.close()


async def test_serve_tells_its_endpoint_and_ends_when_it_is_cancelled() -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve("127.0.0.1", 0, ready=told.set_result))
    connection = await Connection.open(await asyncio.wait_for(told, 10))
    await queue_url(connection)

    serving.cancel()

    assert await connection.at_end()
    with pytest.raises(asyncio.CancelledError):
        await serving
    connection.close()


async def test_closing_the_server_cuts_long_polls() -> None:
    async with local_aws() as endpoint:
        connection = await Connection.open(endpoint)
        url = await queue_url(connection)
        connection.send("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20)
        await asyncio.sleep(0)

    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
        await asyncio.wait_for(connection.read(), 10)
    connection.close()


async def test_a_client_that_reads_slowly_is_not_served_ahead(server: Server) -> None:
    connection = await Connection.open(server.endpoint)
    url = await queue_url(connection)
    await connection.call("SetQueueAttributes", QueueUrl=url, Attributes={"VisibilityTimeout": "0"})
    await connection.call("SendMessage", QueueUrl=url, MessageBody="x" * 1_000_000)
    for _ in range(30):
        connection.send("ReceiveMessage", QueueUrl=url)

    for _ in range(30):
        response = await asyncio.wait_for(connection.read(), 10)
        assert len(response.json["Messages"][0]["Body"]) == 1_000_000
    connection.close()
