"""`outboxd reload`: has a running daemon read its configuration again."""

import argparse
from typing import Any

from outboxd.cli.control import add_socket_arguments, order


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "reload",
        help="have a running daemon use its changed configuration",
        description=(
            "Has the running daemon check its configuration file and restart, one after another, "
            "those of its processes that a change concerns. Waits for the end of it and says what "
            "was done. If anything is wrong, everything runs by the old configuration as before, "
            "and the exit code is 1."
        ),
        epilog="example: outboxd reload --config /etc/outboxd/outboxd.toml",
    )
    add_socket_arguments(parser)
    parser.add_argument(
        "--all",
        action="store_true",
        help="restart every process, also without a change: for new code of handlers",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One order, whose end is waited for: a drain takes as long as the handlers do."""
    from outboxd.supervision.orders import ReloadConfiguration

    return order(arguments, ReloadConfiguration(arguments.all), seconds=None)
