"""`outboxd resume`: has a running daemon receive from a paused queue again."""

import argparse
from typing import Any

from outboxd.cli.control import add_arguments, order


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "resume",
        help="receive from a paused queue again, in a running daemon",
        description="Takes an `outboxd pause` back; a queue that is not paused stays as it is.",
        epilog="example: outboxd resume order-events --config /etc/outboxd/outboxd.toml",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One order, one line."""
    from outboxd.supervision.orders import ResumeQueue

    queue = arguments.queue
    return order(arguments, ResumeQueue(queue), f"{queue} is resumed")
