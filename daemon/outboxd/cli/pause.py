"""`outboxd pause`: has a running daemon stop receiving from one queue."""

import argparse
from typing import Any

from outboxd.cli.control import add_arguments, order


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "pause",
        help="stop receiving from a queue, in a running daemon",
        description=(
            "Has the running daemon receive nothing more from a queue. What it has received is "
            "finished; the rest waits in the queue. Lasts until `outboxd resume`, or until the "
            "daemon is restarted. Other daemons that consume the queue go on."
        ),
        epilog="example: outboxd pause order-events --config /etc/outboxd/outboxd.toml",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """One order, one line."""
    from outboxd.supervision.orders import PauseQueue

    queue = arguments.queue
    return order(arguments, PauseQueue(queue), f"{queue} is paused")
