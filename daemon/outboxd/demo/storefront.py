"""The shop's web application, `handlers.api`, as any ASGI server would run it.

`python -m outboxd.demo.storefront` serves it and prints its address on the first line;
`storefront()` does that in a process of its own.
"""

import argparse
import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from msgspec import Struct

from outboxd.demo.lifeline import end_with_standard_input
from outboxd.demo.neighbours import neighbour
from outboxd.resources import project_directory

DSN_VARIABLE = "SHOP_DATABASE_URL"
SECRET_VARIABLE = "SHOP_WEBHOOK_SECRET"

STOP_SECONDS = 2


class Storefront(Struct, frozen=True):
    """Where the shop is open, and what its payment gateway signs with."""

    address: str
    webhook_secret: str


@contextmanager
def storefront(dsn: str, webhook_secret: str, log: Path) -> Iterator[Storefront]:
    """The shop's web application while the block lasts; `log` takes what it has to say."""
    environ = {DSN_VARIABLE: dsn, SECRET_VARIABLE: webhook_secret}
    with neighbour("outboxd.demo.storefront", [], log, environ) as address:
        yield Storefront(address, webhook_secret)


def main() -> int:
    """Serve until told to stop; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m outboxd.demo.storefront",
        description=f"Serves the shop. {DSN_VARIABLE} and {SECRET_VARIABLE} are its environment.",
    )
    parser.add_argument(
        "--stop-with-stdin", action="store_true", help="end when the standard input ends"
    )
    if parser.parse_args().stop_with_stdin:
        end_with_standard_input()
    # A wheel keeps the shop beside its configuration.
    sys.path.insert(0, str(project_directory()))
    from handlers.api import create_app

    app = create_app(os.environ[DSN_VARIABLE], webhook_secret=os.environ[SECRET_VARIABLE])
    config = uvicorn.Config(
        app, ws="none", log_level="warning", timeout_graceful_shutdown=STOP_SECONDS
    )
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        asyncio.run(uvicorn.Server(config).serve([listening]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
