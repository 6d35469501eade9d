"""`outboxd restart`: has a running daemon replace one of its processes."""

import argparse
from typing import Any

from outboxd.cli.control import add_socket_arguments, order


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "restart",
        help="drain and restart one child process of a running daemon",
        description=(
            "Has the running daemon end a child in good order and start it again: relay, extender, "
            "consumer:<queue>/<number>, or consumer:<queue> for all processes of a pool, one after "
            "another. A child that has been given up is tried again at once. Waits until the new "
            "process is ready."
        ),
        epilog="example: outboxd restart consumer:order-events",
    )
    parser.add_argument("child", metavar="CHILD", help="a child, as /healthz?verbose lists them")
    add_socket_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One order, whose end is waited for: a drain takes as long as the handlers do."""
    from outboxd.supervision.orders import RestartChild

    return order(arguments, RestartChild(arguments.child), seconds=None)
