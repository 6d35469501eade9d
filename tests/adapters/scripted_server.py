"""A server that does to each of its connections exactly what a test has written down."""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from typing import Any, TypeAlias, assert_never

from outboxd.adapters.sqs.client import sqs_client
from outboxd.core.settings import AwsSettings

PATIENCE_SECONDS = 10.0


class Act(Enum):
    """What to do instead of answering."""

    IGNORE = auto()
    """Read a request, and say nothing."""
    HANG_UP = auto()
    """Read a request, and close without an answer."""
    CLOSE = auto()
    """Do not wait for a request."""
    RESET = auto()
    """The same, but so that the client's next write fails at once."""
    CUT = auto()
    """The same, after the client's first byte."""
    READ_NOTHING = auto()


Step: TypeAlias = bytes | Act | threading.Event
"""Bytes: read a request and answer it so. An event: wait for it before the next step."""


def answer(body: bytes = b"{}", *headers: str, status: str = "200 OK") -> bytes:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers)
    return head(*lines) + body


def head(*lines: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")


class ScriptedServer:
    """One script for each connection; after it, a connection is left open."""

    def __init__(self, scripts: Sequence[Sequence[Step]], tls: ssl.SSLContext | None) -> None:
        self._scripts = scripts
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[tuple[int, bytes]] = []
        """The number of the connection, and what came over it."""
        self.played = [threading.Event() for _ in scripts]
        self.hung_up = [threading.Event() for _ in scripts]
        """Whether the client has closed the connection of that number."""
        self.connections = 0
        self._stopping = threading.Event()
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def serve(self) -> None:
        for number, script in enumerate(self._scripts):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._connections.append(connection)
            thread = threading.Thread(target=self._play, args=(number, connection, script))
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stopping.set()
        # A listener that is only closed leaves a thread in accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)

    def _play(self, number: int, raw: socket.socket, script: Sequence[Step]) -> None:
        connection = raw
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(raw, server_side=True)
                self._connections.append(connection)  # which `raw` no longer is
            for step in script:
                if not self._take(number, connection, step):
                    break
            else:
                self.played[number].set()
                if connection.recv(1) == b"":
                    self.hung_up[number].set()
        except OSError:
            self.hung_up[number].set()
        finally:
            connection.close()
            self.played[number].set()

    def _take(self, number: int, connection: socket.socket, step: Step) -> bool:
        match step:
            case threading.Event():
                step.wait(PATIENCE_SECONDS)
            case bytes():
                self.requests.append((number, _request(connection)))
                connection.sendall(step)
            case Act.IGNORE:
                self.requests.append((number, _request(connection)))
            case Act.HANG_UP:
                self.requests.append((number, _request(connection)))
                return False
            case Act.READ_NOTHING:
                self._stopping.wait(PATIENCE_SECONDS)
            case Act.CLOSE:
                return False
            case Act.RESET:
                _reset(connection)
                return False
            case Act.CUT:
                connection.recv(1)
                _reset(connection)
                return False
            case _:
                assert_never(step)
        return True


def _reset(connection: socket.socket) -> None:
    """Closing it now tells the other side by RST instead of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _request(connection: socket.socket) -> bytes:
    """A whole request. Raises OSError if the client ends before it."""
    data = b""
    while b"\r\n\r\n" not in data or len(data) < _length(data):
        more = connection.recv(65_536)
        if not more:
            raise ConnectionError("no request")
        data += more
    return data


def _length(request: bytes) -> int:
    start, _, _ = request.partition(b"\r\n\r\n")
    for line in start.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(start) + 4 + int(value)
    return len(start) + 4


@contextmanager
def scripted(
    *scripts: Sequence[Step], tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedServer]:
    server = ScriptedServer(scripts, tls)
    accepting = threading.Thread(target=server.serve)
    accepting.start()
    try:
        yield server
    finally:
        server.stop()
        accepting.join(PATIENCE_SECONDS)


def client_of(url: str, *, connections: int = 4, attempts: int = 1, **settings: Any) -> Any:
    """A client of SQS; each of its calls is one request."""
    aws = AwsSettings(endpoint_url=url, **{"read_timeout_seconds": 5.0, **settings})
    return sqs_client(aws, connections=connections, attempts=attempts)
