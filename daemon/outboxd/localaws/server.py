"""The server: in this process for tests and the demo, or a process of its own."""

import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from outboxd.localaws.calls import Calls
from outboxd.localaws.clock import Clock
from outboxd.localaws.connection import Connection
from outboxd.localaws.control import Control
from outboxd.localaws.events.service import EventsService
from outboxd.localaws.faults import Faults
from outboxd.localaws.router import Router
from outboxd.localaws.script.script import Script
from outboxd.localaws.sns.service import SnsService
from outboxd.localaws.sqs.service import SqsService

LOOPBACK = "127.0.0.1"


class LocalAws:
    """An AWS of its own: everything in it is gone when it is closed.

    Runs in the event loop that starts it, so a client that blocks belongs in another thread.
    `clock` may be moved from that loop at any time, from elsewhere through `/_localaws/clock`.
    `faults` replaces the script of `/_localaws/faults` as far as calls are concerned.
    """

    def __init__(self, clock: Clock | None = None, faults: Faults | None = None) -> None:
        self.clock = clock or Clock()
        self._faults = faults
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._sqs: SqsService | None = None
        self._script: Script | None = None

    async def start(self, host: str = LOOPBACK, port: int = 0) -> str:
        """Listen, and return the endpoint URL; port 0 takes a free one. Raises OSError."""
        self._script = script = Script(self.clock)
        calls = Calls()
        faults = script if self._faults is None else self._faults
        self._sqs = sqs = SqsService(self.clock, faults, script, calls)
        router = Router(
            sqs,
            SnsService(self.clock, sqs.inbox, faults, calls),
            EventsService(self.clock, sqs.inbox, faults, calls),
            Control(self.clock, sqs, script, calls),
        )
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Connection(router.handle, self._connections), host, port, backlog=1024
        )
        bound = self._server.sockets[0].getsockname()[1]
        return f"http://{f'[{host}]' if ':' in host else host}:{bound}"

    async def close(self) -> None:
        """Stop listening and cut every connection; pending long polls get no answer."""
        if self._server is not None:
            self._server.close()
            for connection in tuple(self._connections):
                connection.hang_up()
            await self._server.wait_closed()
            self._server = None
        if self._script is not None:
            self._script.close()
            self._script = None
        if self._sqs is not None:
            self._sqs.close()
            self._sqs = None


@asynccontextmanager
async def local_aws(
    host: str = LOOPBACK,
    port: int = 0,
    *,
    clock: Clock | None = None,
    faults: Faults | None = None,
) -> AsyncIterator[str]:
    """Serve inside the `async with`; gives the endpoint URL. Raises OSError."""
    server = LocalAws(clock, faults)
    endpoint_url = await server.start(host, port)
    try:
        yield endpoint_url
    finally:
        await server.close()


async def serve(host: str, port: int, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve until cancelled; `ready` is told the endpoint URL. Raises OSError."""
    async with local_aws(host, port) as endpoint_url:
        if ready is not None:
            ready(endpoint_url)
        await asyncio.Event().wait()


def run(host: str, port: int) -> int:
    """Print the endpoint and serve until SIGINT or SIGTERM; returns the exit code."""
    # Deep queues are many long-lived objects without cycles; the default thresholds would have the
    # collector walk through them again and again.
    gc.set_threshold(50_000, 20, 50)
    try:
        asyncio.run(_serve_until_signal(host, port))
    except OSError as error:
        sys.stderr.write(f"localaws cannot listen on {host}:{port}: {error.strerror}\n")
        return 1
    return 0


async def _serve_until_signal(host: str, port: int) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    async with local_aws(host, port) as endpoint_url:
        sys.stdout.write(f"{endpoint_url}\n")
        sys.stdout.flush()
        await stopping.wait()
