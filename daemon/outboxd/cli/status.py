"""`outboxd status`: the status page of a running daemon, in a terminal."""

import argparse
import http.client
import json
import os
import shutil
import sys
import time
from typing import Any
from urllib.parse import SplitResult

from outboxd.cli.arguments import add_json_argument, http_url, seconds
from outboxd.cli.status_text import status_text
from outboxd.core.exit_codes import ExitCode
from outboxd.version import __version__

DEFAULT_URL = "http://127.0.0.1:9464"
PATH = "/status.json"
LONGEST_ANSWER = 8 << 20
HOME_AND_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class NoStatus(Exception):
    """There is none to show; the text says why."""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "status",
        help="show how a running daemon is",
        description=(
            "Shows what the status page of a running daemon shows: whether it is healthy, what is "
            "late, what fails. Exits with 0 when it is healthy, else with 1; with --watch it goes "
            "on until Ctrl-C."
        ),
        epilog="example: outboxd status --watch --url http://127.0.0.1:9464",
    )
    parser.add_argument(
        "--url",
        type=http_url,
        default=DEFAULT_URL,
        help=f"the daemon to ask, at the address of its [http] (default: {DEFAULT_URL})",
    )
    parser.add_argument("--watch", action="store_true", help="show it again and again")
    parser.add_argument(
        "--every-seconds",
        type=seconds,
        default=2.0,
        metavar="SECONDS",
        help="how often, with --watch (default: 2)",
    )
    parser.add_argument(
        "--timeout-seconds",
        type=seconds,
        default=3.0,
        metavar="SECONDS",
        help="how long to wait for an answer (default: 3)",
    )
    add_json_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One look, or one after the other."""
    if not arguments.watch:
        return _look(arguments)
    while True:
        _look(arguments)
        time.sleep(arguments.every_seconds)


def _look(arguments: argparse.Namespace) -> int:
    redraw = arguments.watch and sys.stdout.isatty() and not arguments.json
    try:
        body = _ask(arguments.url, arguments.timeout_seconds)
        status = _document(arguments.url, body)
        shown = json.dumps(status) if arguments.json else _text(arguments.url, status)
    except NoStatus as error:
        if redraw:
            print(HOME_AND_CLEAR, end="", flush=True)
        print(f"no status: {error}", file=sys.stderr, flush=True)
        return ExitCode.UNEXPECTED
    print(f"{HOME_AND_CLEAR}{_fitting(shown)}" if redraw else shown, flush=True)
    return ExitCode.OK if status["health"] == "healthy" else ExitCode.UNEXPECTED


def _fitting(text: str) -> str:
    """What there is room for, from the top: there it says whether all is well, and what is not."""
    columns, rows = shutil.get_terminal_size()
    lines = [line[:columns] for line in text.splitlines()]
    if len(lines) < rows:
        return "\n".join(lines)
    return "\n".join([*lines[: rows - 2], f"… {len(lines) - rows + 2} more lines: make it higher"])


def _ask(url: SplitResult, timeout_seconds: float) -> bytes:
    # http.client and not urllib.request: that one would follow http_proxy out of the container.
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout_seconds)
    try:
        path = PATH if url.path in ("", "/") else url.path
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read(LONGEST_ANSWER)
    except (OSError, http.client.HTTPException) as error:
        raise NoStatus(f"{url.geturl()}: {_reason(error)}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise NoStatus(f"{url.geturl()} answers {response.status}")
    return body


def _document(url: SplitResult, body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
        if not isinstance(document["health"], str):
            raise TypeError
    except (ValueError, KeyError, TypeError) as error:
        raise NoStatus(f"{url.geturl()} is not the status of an outboxd") from error
    return dict(document)


def _text(url: SplitResult, status: dict[str, Any]) -> str:
    try:
        return status_text(status, colour=_colour())
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        # Something else that has a word for its health, or an outboxd of another version.
        raise NoStatus(
            f"{url.geturl()} is not the status of an outboxd {__version__} ({_what(error)})"
        ) from error


def _what(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _reason(error: OSError | http.client.HTTPException) -> str:
    words = error.strerror if isinstance(error, OSError) else None
    return words or " ".join(str(error).split()) or type(error).__name__


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
