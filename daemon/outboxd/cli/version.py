"""`outboxd version`: what is installed, for a report of a problem."""

import argparse
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from outboxd.cli.arguments import add_json_argument
from outboxd.core.exit_codes import ExitCode
from outboxd.version import __version__

DEPENDENCIES = ("anyio", "boto3", "msgspec", "psycopg", "prometheus-client")


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "version",
        help="print the version",
        description="Prints the version of outboxd; with --json also what it runs on.",
        epilog="example: outboxd version --json",
    )
    add_json_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    if arguments.json:
        import msgspec

        print(msgspec.json.encode(_installed()).decode())
    else:
        print(f"outboxd {__version__}")
    return ExitCode.OK


def _installed() -> dict[str, object]:
    return {
        "outboxd": __version__,
        "python": platform.python_version(),
        "platform": sys.platform,
        "dependencies": {name: _version_of(name) for name in DEPENDENCIES},
    }


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
