"""A mail server that delivers into a Maildir, where `outboxd.demo.mail.MailReader` finds it.

`python -m outboxd.demo.post_office --maildir FOLDER` serves and prints HOST:PORT on the first
line; `post_office()` does that in a process of its own, for the demo and for tests.
"""

import argparse
import asyncio
import mailbox
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from aiosmtpd.smtp import SMTP, Envelope, Session

from outboxd.demo.lifeline import end_with_standard_input
from outboxd.demo.neighbours import neighbour


class PostOffice(NamedTuple):
    """Where it listens, and where it delivers."""

    host: str
    port: int
    maildir: Path


@contextmanager
def post_office(maildir: Path, log: Path) -> Iterator[PostOffice]:
    """A mail server while the block lasts; `log` takes what it has to say."""
    with neighbour("outboxd.demo.post_office", ["--maildir", str(maildir)], log) as address:
        host, _, port = address.rpartition(":")
        yield PostOffice(host, int(port), maildir)


class Delivering:
    """Answers 250 when a message is on disk, and not before."""

    def __init__(self, maildir: Path) -> None:
        for name in ("tmp", "new", "cur"):
            (maildir / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._maildir = mailbox.Maildir(maildir, create=False)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 aiosmtpd's name
        """Deliver one message, as it came."""
        if not isinstance(envelope.content, bytes):
            return "554 no message"
        try:
            self._maildir.add(envelope.content)
        except OSError as error:
            return f"452 it cannot be stored: {error.strerror}"
        return "250 delivered"


def main() -> int:
    """Serve as the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m outboxd.demo.post_office",
        description="Delivers all mail into one Maildir until Ctrl-C.",
    )
    parser.add_argument("--maildir", type=Path, required=True, help="made if it is not there")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=0, help="port (default: 0, a free one)")
    parser.add_argument(
        "--stop-with-stdin", action="store_true", help="end when the standard input ends"
    )
    arguments = parser.parse_args()
    if arguments.stop_with_stdin:
        end_with_standard_input()
    try:
        asyncio.run(_serve(arguments.host, arguments.port, arguments.maildir))
    except OSError as error:
        sys.stderr.write(f"the post office cannot work: {error}\n")
        return 1
    return 0


async def _serve(host: str, port: int, maildir: Path) -> None:
    delivering = Delivering(maildir)
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    server = await loop.create_server(
        # The name is given, or each connection would look it up.
        lambda: SMTP(delivering, hostname="post-office.example", loop=loop),
        host,
        port,
        backlog=1024,
    )
    async with server:
        sys.stdout.write(f"{host}:{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await stopping.wait()


if __name__ == "__main__":
    sys.exit(main())
