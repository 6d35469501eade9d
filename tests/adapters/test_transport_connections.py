"""Which connection a request goes over, and which requests are never sent twice."""

import threading
from contextlib import closing
from functools import partial
from typing import Any

import anyio
import pytest
from anyio import to_thread
from botocore.exceptions import ConnectionClosedError

from outboxd.adapters.aws.transport import connection as connections
from outboxd.adapters.aws.transport.answers import AnswerReader
from outboxd.adapters.aws.transport.connection import Connection, NotTaken
from tests.adapters.scripted_server import (
    PATIENCE_SECONDS,
    Act,
    ScriptedServer,
    answer,
    client_of,
    head,
    scripted,
)
from tests.relay.scene import eventually

OK = answer()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


def used(server: ScriptedServer) -> list[int]:
    """The connections over which requests came, one by one."""
    return [number for number, _ in server.requests]


def is_closed(server: ScriptedServer, number: int) -> bool:
    return server.hung_up[number].wait(PATIENCE_SECONDS)


@pytest.fixture(params=["lean", "botocore"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_one_connection_serves_call_after_call(transport: str) -> None:
    with (
        scripted([OK, OK, OK]) as server,
        closing(client_of(server.url, transport=transport)) as client,
    ):
        for _ in range(3):
            client.list_queues()

        assert used(server) == [0, 0, 0]


def test_closing_the_client_closes_its_connections(transport: str) -> None:
    with scripted([OK]) as server:
        client = client_of(server.url, transport=transport)
        client.list_queues()
        client.close()

        assert is_closed(server, 0)


def test_a_client_that_is_forgotten_leaves_no_connection() -> None:
    with scripted([OK]) as server:
        client_of(server.url).list_queues()

        assert is_closed(server, 0)


def test_a_client_still_works_after_its_end_but_keeps_nothing(transport: str) -> None:
    with scripted([OK], [OK]) as server:
        client = client_of(server.url, transport=transport)
        client.list_queues()
        client.close()
        client.list_queues()
        client.close()

        assert is_closed(server, 1)


def test_a_connection_that_was_closed_while_idle_is_not_used(transport: str) -> None:
    with (
        scripted([OK, Act.CLOSE], [OK]) as server,
        closing(client_of(server.url, transport=transport)) as client,
    ):
        client.list_queues()
        server.played[0].wait(PATIENCE_SECONDS)
        client.list_queues()

        assert used(server) == [0, 1]


def test_a_request_without_an_answer_is_not_sent_again(transport: str) -> None:
    """The server may have acted on it."""
    with (
        scripted([OK, Act.HANG_UP], [OK]) as server,
        closing(client_of(server.url, transport=transport)) as client,
    ):
        client.list_queues()
        with pytest.raises(ConnectionClosedError):
            client.list_queues()

        assert used(server) == [0, 0]
        assert server.connections == 1


def test_a_request_of_which_nothing_was_taken_goes_over_a_new_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        scripted([OK, Act.RESET], [OK]) as server,
        closing(client_of(server.url)) as client,
    ):
        client.list_queues()
        server.played[0].wait(PATIENCE_SECONDS)
        # Reset between the look at the connection and the first byte.
        monkeypatch.setattr(Connection, "fresh", lambda *_: True)
        client.list_queues()

        assert used(server) == [0, 1]


def test_a_new_connection_that_takes_nothing_is_the_end_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[bytes] = []

    def refuse(_: Connection, message: bytes) -> None:
        tries.append(message)
        raise NotTaken from ConnectionResetError("reset")

    monkeypatch.setattr(Connection, "_write", refuse)
    with (
        scripted([OK], [OK]) as server,
        closing(client_of(server.url)) as client,
        pytest.raises(ConnectionClosedError, match="Connection was closed"),
    ):
        client.list_queues()

    assert len(tries) == 1


def test_what_is_said_unasked_is_nobodys_answer() -> None:
    secret = answer(b'{"QueueUrls":["http://queue/of-somebody-else"]}')
    with (
        scripted([OK + secret], [OK]) as server,
        closing(client_of(server.url)) as client,
    ):
        assert "QueueUrls" not in client.list_queues()
        assert "QueueUrls" not in client.list_queues()

        assert used(server) == [0, 1]
        assert is_closed(server, 0)


@pytest.mark.parametrize(
    "raw",
    [
        answer(b"{}", "Connection: close"),
        head("HTTP/1.0 200 OK", "Content-Length: 2") + b"{}",
        answer() + b"x",
    ],
)
def test_a_connection_that_is_not_to_be_kept_is_closed(raw: bytes) -> None:
    with (
        scripted([raw], [OK]) as server,
        closing(client_of(server.url)) as client,
    ):
        client.list_queues()

        assert is_closed(server, 0)
        client.list_queues()
        assert used(server) == [0, 1]


def test_a_connection_that_was_idle_for_too_long_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(connections, "boottime", lambda: now[0])
    with (
        scripted([OK, OK], [OK]) as server,
        closing(client_of(server.url)) as client,
    ):
        client.list_queues()
        now[0] += 14.0
        client.list_queues()
        now[0] += 15.0
        client.list_queues()

        assert used(server) == [0, 0, 1]
        assert is_closed(server, 0)


def test_a_process_that_was_forked_uses_no_connection_of_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        scripted([OK], [OK]) as server,
        closing(client_of(server.url)) as client,
    ):
        client.list_queues()
        monkeypatch.setattr("os.getpid", lambda: -1)
        client.list_queues()

        assert used(server) == [0, 1]


def in_threads(client: Any, calls: int) -> list[threading.Thread]:
    threads = [threading.Thread(target=client.list_queues) for _ in range(calls)]
    for thread in threads:
        thread.start()
    return threads


def test_threads_share_no_connection_and_as_many_are_kept_as_are_wanted() -> None:
    go = threading.Event()
    with (
        scripted([go, OK, OK], [go, OK, OK], [go, OK, OK]) as server,
        closing(client_of(server.url, connections=2)) as client,
    ):
        threads = in_threads(client, 3)
        while server.connections < 3:
            threading.Event().wait(0.001)
        go.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)

        assert sorted(used(server)) == [0, 1, 2]
        while not (closed := [n for n in range(3) if server.hung_up[n].is_set()]):
            threading.Event().wait(0.001)
        client.list_queues()
        assert used(server)[-1] not in closed
        assert [n for n in range(3) if server.hung_up[n].is_set()] == closed


async def test_a_call_that_nobody_waits_for_any_more_keeps_its_connection_to_itself() -> None:
    go = threading.Event()
    first, second = (answer(b'{"QueueUrls":["%b"]}' % name) for name in (b"first", b"second"))
    with (
        scripted([go, first, OK], [second, OK]) as server,
        closing(client_of(server.url)) as client,
    ):
        call = partial(to_thread.run_sync, client.list_queues, abandon_on_cancel=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await eventually(lambda: server.connections)
            tasks.cancel_scope.cancel()

        assert (await call())["QueueUrls"] == ["second"]
        assert used(server) == [1]
        go.set()
        await eventually(lambda: 0 in used(server))
        assert "QueueUrls" not in await call()


def test_an_interruption_in_the_middle_of_an_answer_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with (
        scripted([OK], [OK]) as server,
        closing(client_of(server.url)) as client,
    ):
        with monkeypatch.context() as patches:
            patches.setattr(AnswerReader, "feed", interrupted)
            with pytest.raises(KeyboardInterrupt):
                client.list_queues()

        assert is_closed(server, 0)
        client.list_queues()
        assert used(server) == [0, 1]
