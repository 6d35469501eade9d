"""The supervisor's HTTP endpoint: status, metrics, liveness, readiness, answered from memory."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from outboxd.core.errors import AddressInUse, OutboxdError, SettingsError
from outboxd.supervision.status.page import HEADERS as PAGE_HEADERS

MAX_CONNECTIONS = 64
IDLE_SECONDS = 5
CONNECTION_SECONDS = 30.0
"""No connection lives longer, or a few silent ones would use up all that there may be."""
LAST_ANSWER_SECONDS = 5.0
BACKLOG = 128

Render = Callable[[str], tuple[bytes, str]]
"""The metrics for an Accept header: body and content type."""


class ChildRow(msgspec.Struct, frozen=True):
    """What is told about one child; ages are in seconds."""

    name: str
    state: str
    pid: int | None
    restarts: int
    heartbeat_age: float | None


class Health(Protocol):
    """Answers from what the supervisor knows, at once; it never asks PostgreSQL, AWS or a child.

    A liveness that looked at a database would have every task restarted during its failover.
    """

    def alive(self) -> Sequence[str]:
        """Problems that only a restart of the whole can cure; none means alive."""

    def ready(self) -> Sequence[str]:
        """Reasons why the daemon does not do all of its work now; none means ready."""

    def children(self) -> Sequence[ChildRow]:
        """Every child, in the order of the configuration."""


class StatusPages(Protocol):
    """The status, for people and for programs, from memory like everything else here."""

    def page(self) -> bytes:
        """A whole HTML document."""

    def document(self) -> bytes:
        """The same as JSON."""


def create_app(render: Render, health: Health, status: StatusPages) -> Starlette:
    """The application; everything that it tells is injected."""

    async def page(_: Request) -> Response:
        return Response(status.page(), media_type="text/html", headers=PAGE_HEADERS)

    async def document(_: Request) -> Response:
        return Response(
            status.document(),
            media_type="application/json",
            headers={"cache-control": "no-store", "x-content-type-options": "nosniff"},
        )

    async def metrics(request: Request) -> Response:
        body, content_type = render(request.headers.get("accept", ""))
        # The header as a whole: a media type alone would get a second charset appended.
        return Response(body, headers={"content-type": content_type})

    async def healthz(request: Request) -> Response:
        verbose = "verbose" in request.query_params
        return _verdict("alive", health.alive(), health.children() if verbose else ())

    async def readyz(request: Request) -> Response:
        verbose = "verbose" in request.query_params
        return _verdict("ready", health.ready(), health.children() if verbose else ())

    routes = [
        Route("/", page),
        Route("/status.json", document),
        Route("/metrics", metrics),
        Route("/healthz", healthz),
        Route("/readyz", readyz),
    ]
    return Starlette(routes=routes)


def _verdict(state: str, problems: Sequence[str], rows: Sequence[ChildRow]) -> Response:
    lines = [*problems] if problems else [state]
    lines += [_row(row) for row in rows]
    return PlainTextResponse(
        "".join(f"{line}\n" for line in lines),
        status_code=503 if problems else 200,
        headers={"cache-control": "no-store"},
    )


def _row(row: ChildRow) -> str:
    pid = "-" if row.pid is None else str(row.pid)
    age = "-" if row.heartbeat_age is None else f"{row.heartbeat_age:.1f}s"
    return f"{row.name}\t{row.state}\tpid={pid}\trestarts={row.restarts}\theartbeat_age={age}"


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, taken before any child is started.

    Raises AddressInUse if another process has it, so that a second daemon on the same port ends
    before it has touched anything; it may be tried again, for a predecessor gives its port back.
    Raises SettingsError if the address can never be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsError([f"[http] host: {host!r} is not usable: {error}"]) from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise _refusal(host, port, error) from error
    sock.setblocking(False)
    return sock


def _refusal(host: str, port: int, error: OSError) -> OutboxdError:
    if error.errno == errno.EADDRINUSE:
        return AddressInUse(
            f"[http] port: {port} of {host} is already in use, perhaps by another outboxd; "
            "stop that process or choose another port (0 takes a free one)"
        )
    return SettingsError([_why_never(host, port, error)])


def _why_never(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EACCES:
            return f"[http] port: no permission for {port}; choose one above 1023"
        case errno.EADDRNOTAVAIL:
            return f"[http] host: {host} is no address of this machine; 0.0.0.0 takes all of them"
        case _:
            reason = os.strerror(error.errno) if error.errno is not None else str(error)
            return f"[http]: cannot listen on {host}, port {port}: {reason}"


async def serve(
    app: Starlette, sock: socket.socket, *, started: Callable[[], None] | None = None
) -> None:
    """Answer on `sock` until cancelled; then finish what is being answered and close it."""
    server = _Server(
        uvicorn.Config(
            app,
            http=_BoundedConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.WARNING,  # of uvicorn's own loggers; what it tells is not ours to log
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            backlog=BACKLOG,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=1,
        ),
        started,
    )
    try:
        await server.serve(sockets=[sock])
    finally:
        with anyio.CancelScope(shield=True):
            if server.started:
                await server.shutdown(sockets=[sock])
        sock.close()


class _Server(uvicorn.Server):
    """Uvicorn without its signal handlers, which belong to the supervisor, and without its tick,
    which wakes the process ten times a second to see whether it should exit."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._on_started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        if self._on_started is not None:
            self._on_started()
        await anyio.sleep_forever()


class _BoundedConnection(H11Protocol):
    """A connection with an end: uvicorn bounds idleness after an answer, but neither a client that
    never finishes its request nor one that never reads the answer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._end: asyncio.TimerHandle = self.loop.call_later(CONNECTION_SECONDS, self._finish)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end.cancel()
        super().connection_lost(exc)

    def _finish(self) -> None:
        self._end = self.loop.call_later(LAST_ANSWER_SECONDS, self.transport.abort)
        self.shutdown()
