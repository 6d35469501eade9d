"""`outboxd healthcheck`: asks a running daemon whether it is well; for containers."""

import argparse
import http.client
import sys
from typing import Any
from urllib.parse import SplitResult

from outboxd.cli.arguments import http_url, seconds
from outboxd.core.exit_codes import ExitCode

DEFAULT_URL = "http://127.0.0.1:9464/healthz"


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "healthcheck",
        help="ask a running daemon whether it is well",
        description=(
            "Asks a running daemon over HTTP. Exits with 0 when it answers 200, else with 1. "
            "/healthz says whether the supervisor is alive, /readyz whether everything it "
            "supervises is ready."
        ),
        epilog="example: outboxd healthcheck --url http://127.0.0.1:9464/readyz",
    )
    parser.add_argument(
        "--url",
        type=http_url,
        default=DEFAULT_URL,
        help=f"what to ask (default: {DEFAULT_URL})",
    )
    parser.add_argument(
        "--timeout-seconds",
        type=seconds,
        default=3.0,
        metavar="SECONDS",
        help="how long to wait (default: 3)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One line, one exit code."""
    url: SplitResult = arguments.url
    try:
        status, first_line = _ask(url, arguments.timeout_seconds)
    except (OSError, http.client.HTTPException) as error:
        print(f"unhealthy: {url.geturl()}: {_reason(error)}", file=sys.stderr)
        return ExitCode.UNEXPECTED
    if status != http.client.OK:
        print(f"unhealthy: {url.geturl()} answers {status} {first_line}".strip(), file=sys.stderr)
        return ExitCode.UNEXPECTED
    print(f"healthy: {first_line}" if first_line else "healthy")
    return ExitCode.OK


def _ask(url: SplitResult, timeout_seconds: float) -> tuple[int, str]:
    # http.client and not urllib.request: that one would follow http_proxy out of the container.
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout_seconds)
    try:
        connection.request("GET", url.path or "/", headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read(4096).decode("utf-8", "replace").strip()
    finally:
        connection.close()
    return response.status, body.splitlines()[0] if body else ""


def _reason(error: OSError | http.client.HTTPException) -> str:
    words = error.strerror if isinstance(error, OSError) else None
    return words or " ".join(str(error).split()) or type(error).__name__
