"""Serves the partners until it is told to stop."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from outboxd.demo.partners.app import PartnersApp
from outboxd.demo.partners.hangup import HangupProtocol

STOP_SECONDS = 1

IDLE_SECONDS = 60


def run(host: str, port: int) -> int:
    """Print the address and serve until SIGINT or SIGTERM; returns the exit code."""
    try:
        listening = socket.create_server((host, port), backlog=1024)
    except OSError as error:
        sys.stderr.write(f"the partners cannot listen on {host}:{port}: {error.strerror}\n")
        return 1
    with listening:
        asyncio.run(_serve(host, listening))
    return 0


async def _serve(host: str, listening: socket.socket) -> None:
    config = uvicorn.Config(
        PartnersApp(),
        http=HangupProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        # Longer than clients keep idle connections, or some requests would meet the end of one.
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, setattr, server, "should_exit", True)
    sys.stdout.write(f"http://{host}:{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve([listening])


class _Server(uvicorn.Server):
    """Uvicorn without its signal handlers, which raise the signal again once it has stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
