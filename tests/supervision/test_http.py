import errno
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from outboxd.core.errors import AddressInUse, SettingsError
from outboxd.supervision import http
from outboxd.supervision.http import ChildRow, bind, create_app, serve


class Facts:
    """Health as a test sets it."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.waiting: list[str] = []

    def alive(self) -> Sequence[str]:
        return self.broken

    def ready(self) -> Sequence[str]:
        return self.waiting

    def children(self) -> Sequence[ChildRow]:
        return [
            ChildRow("relay", "ready", 4711, 2, 0.52),
            ChildRow("extender", "backoff", None, 0, None),
        ]


class Pages:
    """A status that is easily told from everything else."""

    def page(self) -> bytes:
        return b"<p>well</p>"

    def document(self) -> bytes:
        return b'{"health":"healthy"}'


def render(accept: str) -> tuple[bytes, str]:
    return f"# {accept}\n".encode(), "text/plain; version=0.0.4; charset=utf-8"


@asynccontextmanager
async def served(facts: Facts | None = None) -> AsyncIterator[int]:
    """The port of an endpoint that runs as long as the block."""
    sock = bind("127.0.0.1", 0)
    port: int = sock.getsockname()[1]
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await serve(create_app(render, facts or Facts(), Pages()), sock, started=started.set)

        tasks.start_soon(run)
        await started.wait()
        yield port
        tasks.cancel_scope.cancel()


async def read_to_end(stream: SocketStream) -> str:
    received = b""
    try:
        while True:
            received += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return received.decode()


async def get(port: int, target: str, *headers: str, method: str = "GET") -> tuple[int, str, str]:
    """Status, head and body of one request."""
    head = "".join(f"{line}\r\n" for line in ("Host: localhost", "Connection: close", *headers))
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode())
        answer = await read_to_end(stream)
    answered, _, body = answer.partition("\r\n\r\n")
    return int(answered.split()[1]), answered.lower(), body


async def test_metrics_are_rendered_as_the_scraper_accepts_them() -> None:
    async with served() as port:
        status, head, body = await get(port, "/metrics", "Accept: application/openmetrics-text")

    assert status == 200
    assert body == "# application/openmetrics-text\n"
    assert "content-type: text/plain; version=0.0.4; charset=utf-8\r\n" in head
    assert "server:" not in head


async def test_liveness_and_readiness_are_told_apart() -> None:
    facts = Facts()
    facts.waiting = ["consumer:orders/1 is in backoff"]
    async with served(facts) as port:
        assert (await get(port, "/healthz"))[::2] == (200, "alive\n")
        assert (await get(port, "/readyz"))[::2] == (503, "consumer:orders/1 is in backoff\n")
        facts.waiting = []
        facts.broken = ["relay gave no sign of life for 12 s"]
        assert (await get(port, "/healthz"))[::2] == (503, "relay gave no sign of life for 12 s\n")
        assert (await get(port, "/readyz"))[::2] == (200, "ready\n")


async def test_a_verbose_health_check_lists_every_child() -> None:
    async with served() as port:
        _, _, body = await get(port, "/healthz?verbose")

    assert body.splitlines() == [
        "alive",
        "relay\tready\tpid=4711\trestarts=2\theartbeat_age=0.5s",
        "extender\tbackoff\tpid=-\trestarts=0\theartbeat_age=-",
    ]


async def test_the_status_is_a_page_and_a_document_that_nobody_keeps_or_frames() -> None:
    async with served() as port:
        status, head, body = await get(port, "/")
        assert (status, body) == (200, "<p>well</p>")
        assert "content-type: text/html; charset=utf-8\r\n" in head
        assert "content-security-policy: default-src 'none';" in head
        assert "frame-ancestors 'none'" in head
        status, head, body = await get(port, "/status.json")
        assert (status, body) == (200, '{"health":"healthy"}')
        assert "content-type: application/json\r\n" in head
        assert "cache-control: no-store\r\n" in head


async def test_everything_is_read_only_and_the_rest_is_not_found() -> None:
    async with served() as port:
        assert (await get(port, "/admin"))[0] == 404
        for path in ("/", "/status.json", "/metrics"):
            assert (await get(port, path, method="POST"))[0] == 405


async def test_a_metrics_failure_is_an_error_of_that_request_alone() -> None:
    def broken(accept: str) -> tuple[bytes, str]:
        raise RuntimeError("no metrics today")

    sock = bind("127.0.0.1", 0)
    port: int = sock.getsockname()[1]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, create_app(broken, Facts(), Pages()), sock)
        assert (await get(port, "/metrics"))[0] == 500
        assert (await get(port, "/healthz"))[0] == 200
        tasks.cancel_scope.cancel()


async def test_signal_handlers_stay_the_supervisors_own() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    async with served():
        during = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]

    assert during == before


async def test_requests_before_the_server_runs_wait_instead_of_being_refused() -> None:
    sock = bind("127.0.0.1", 0)
    port: int = sock.getsockname()[1]
    async with (
        anyio.create_task_group() as tasks,
        await anyio.connect_tcp("127.0.0.1", port) as early,
    ):
        await early.send(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        tasks.start_soon(serve, create_app(render, Facts(), Pages()), sock)
        assert (await read_to_end(early)).endswith("ready\n")
        tasks.cancel_scope.cancel()


async def test_cancelling_closes_the_socket_and_idle_connections() -> None:
    async with served() as port:
        idle = await anyio.connect_tcp("127.0.0.1", port)
        assert idle.extra(SocketAttribute.remote_port) == port

    assert await read_to_end(idle) == ""
    await idle.aclose()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


async def test_a_client_that_never_finishes_its_request_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "CONNECTION_SECONDS", 0.05)
    async with served() as port, await anyio.connect_tcp("127.0.0.1", port) as slow:
        await slow.send(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        with anyio.fail_after(10):
            assert await read_to_end(slow) == ""


def test_a_taken_port_is_told_before_anything_is_started() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUse, match=rf"^\[http\] port: {port} .* already in use"):
            bind("127.0.0.1", port)


def test_a_host_that_is_not_ours_is_told_by_its_setting() -> None:
    with pytest.raises(SettingsError, match=r"^\[http\] host: 192\.0\.2\.1 is no address of this"):
        bind("192.0.2.1", 0)
    with pytest.raises(SettingsError, match=r"^\[http\] host: 'no such host' is not usable"):
        bind("no such host", 0)


def test_the_socket_is_not_inherited_by_children() -> None:
    with bind("127.0.0.1", 0) as sock:
        assert not sock.get_inheritable()
