"""`outboxd demo`: the whole thing at work, without Docker and without an AWS account."""

import argparse
import signal
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from outboxd.cli.stopping import stopped_by_signals
from outboxd.core.errors import OutboxdError
from outboxd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from outboxd.demo.options import DemoOptions
    from outboxd.demo.summary import Summary

INTERRUPTED = 128 + signal.SIGINT

EXTRA = ("aiosmtpd", "httpx", "moto", "reportlab")
"""Packages of the extra `demo`, which nothing else of outboxd has a use for."""

DEFAULT_ORDERS = 200
"""Of a run that is to end by itself."""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "demo",
        help="watch a small shop run on outboxd, with everything it needs",
        description=(
            "Starts PostgreSQL and a local AWS in a temporary directory, runs the real daemon on "
            "them, plays a shop's customers and its payment gateway, and shows what happens until "
            "Ctrl-C. Needs outboxd to be installed with its extra `demo`."
        ),
        epilog="example: outboxd demo --orders 200 --kill-every 2 --exit-when-drained --json",
    )
    parser.add_argument(
        "--orders", type=_count, metavar="N", help="how many orders (default: no end)"
    )
    parser.add_argument(
        "--rate", type=_positive, default=10.0, metavar="N", help="orders a second (default: 10)"
    )
    parser.add_argument(
        "--exit-when-drained",
        action="store_true",
        help=f"end when all work is done, after N orders (default: {DEFAULT_ORDERS}); exit 0 only "
        "if nothing was lost, repeated or left",
    )
    parser.add_argument(
        "--timeout",
        type=_positive,
        metavar="SECONDS",
        help="with --exit-when-drained: how long that may take (default: 60 or more)",
    )
    parser.add_argument(
        "--kill-every",
        type=_positive,
        metavar="SECONDS",
        help="SIGKILL a random child this often, each kind at least once",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of carts, prices and kills (default: 1)"
    )
    parser.add_argument(
        "--aws-endpoint", metavar="URL", help="use this AWS, or stand-in for it, and clean up there"
    )
    parser.add_argument(
        "--database-url",
        metavar="URL",
        help="use this PostgreSQL server: a new database there, which is dropped at the end",
    )
    parser.add_argument(
        "--port", type=_port, default=0, metavar="N", help="of /metrics (default: a free one)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the summary as JSON, in the last line"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Play until the end or Ctrl-C, and print what became of everything."""
    from outboxd.resources import project_directory

    _check_extra()
    # The demo's customers use the shop's own code, which a wheel keeps beside its configuration.
    sys.path.insert(0, str(project_directory()))
    from outboxd.demo.play import play
    from outboxd.demo.view import viewing

    with stopped_by_signals() as stopping, viewing() as view:
        try:
            summary = play(_options(arguments), view, stopping)
        except OutboxdError as error:
            view.say(f"outboxd demo: {error}")
            return ExitCode.UNEXPECTED
    if summary is None:
        print("outboxd demo: stopped before the shop had opened", file=sys.stderr)
        return INTERRUPTED
    _print(summary, as_json=arguments.json)
    return ExitCode.UNEXPECTED if summary.problems else ExitCode.OK


def _check_extra() -> None:
    """Raises DemoError, before anything is started, for packages that are not there."""
    from outboxd.demo.errors import DemoError

    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        raise DemoError(
            f"the demo needs packages that are not installed: {', '.join(missing)}; install "
            "outboxd with its extra `demo`"
        )


def _options(arguments: argparse.Namespace) -> "DemoOptions":
    from outboxd.demo.options import DemoOptions

    orders = arguments.orders
    if orders is None and arguments.exit_when_drained:
        orders = DEFAULT_ORDERS
    return DemoOptions(
        orders=orders,
        exit_when_drained=arguments.exit_when_drained,
        rate=arguments.rate,
        kill_every_seconds=arguments.kill_every,
        timeout_seconds=arguments.timeout,
        aws_endpoint=arguments.aws_endpoint,
        database_url=arguments.database_url,
        seed=arguments.seed,
        port=arguments.port,
    )


def _print(summary: "Summary", *, as_json: bool) -> None:
    import msgspec

    from outboxd.demo.report import lines

    if as_json:
        print(msgspec.json.encode(summary).decode())
    else:
        print("\n".join(lines(summary)))


def _count(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1_000_000:
        raise argparse.ArgumentTypeError("expected a number from 1 to 1000000")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number <= 1_000_000:
        raise argparse.ArgumentTypeError("expected a number above 0")
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError("expected a number from 0 to 65535")
    return number
