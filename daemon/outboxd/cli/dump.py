"""`outboxd dump`: has all processes of a running daemon say what they are doing."""

import argparse
from typing import Any

from outboxd.cli.control import add_socket_arguments, order


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "dump",
        help="write the stacks of a running daemon's processes to its standard error",
        description=(
            "Has the running daemon and all of its children write the Python stacks of their "
            "threads to its standard error, beside the log. Also what hangs does so, and nothing "
            "is interrupted. The same as SIGUSR1 to the daemon."
        ),
        epilog="example: outboxd dump --config /etc/outboxd/outboxd.toml",
    )
    add_socket_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One order, one line."""
    from outboxd.supervision.orders import DumpStacks

    return order(arguments, DumpStacks())
