"""A web application behind a real server, in a thread of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp


class Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, app: ASGIApp) -> None:
        config = uvicorn.Config(app, port=0, log_config=None, ws="none", lifespan="on")
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @property
    def address(self) -> str:
        port = self.servers[0].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"


@contextmanager
def served(app: ASGIApp) -> Iterator[httpx.Client]:
    """A client of the application while the block lasts."""
    server = Server(app)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.listening.wait(30)
        with httpx.Client(base_url=server.address, trust_env=False, timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
