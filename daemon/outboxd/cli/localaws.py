"""`outboxd localaws`: the local stand-in for AWS, for development and tests."""

import argparse
from typing import Any

from outboxd.cli.arguments import port


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "localaws",
        help="run a local, in-memory stand-in for SQS, SNS and EventBridge",
        description=(
            "Runs a strict, in-memory stand-in for SQS, SNS and EventBridge until Ctrl-C. It keeps "
            "nothing on disk and checks no credentials: for development and tests only. Point "
            "[aws] endpoint_url at it."
        ),
        epilog="example: outboxd localaws --port 4566",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=port, default=4566, help="port, 0 for a free one (default: 4566)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until it is stopped."""
    from outboxd.localaws.server import run as serve

    return serve(arguments.host, arguments.port)
