"""`outboxd run`: the daemon itself."""

import argparse
import faulthandler
import os
import signal
import sys
from typing import Any

from outboxd.core.exit_codes import ExitCode


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "run",
        help="run the daemon until SIGTERM or Ctrl-C",
        description=(
            "Starts the supervisor with its child processes: the outbox relay, one consumer pool "
            "per queue, and the visibility extender. SIGTERM and Ctrl-C drain; a second Ctrl-C "
            "ends everything now. SIGHUP reads the configuration again, SIGUSR1 writes the stacks "
            "of all processes to standard error."
        ),
        epilog="example: outboxd run --config /etc/outboxd/outboxd.toml --only relay",
    )
    from outboxd.cli.arguments import add_config_argument

    add_config_argument(parser)
    parser.add_argument(
        "--only",
        metavar="PART",
        help="run one part: relay, or consumer:<queue> (which brings its extender)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run until a stop; the exit code says why it ended."""
    _open_standard_streams()
    # As PID 1 of a container a process without a handler ignores SIGTERM altogether.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.OK))
    # Until the supervisor can reload; what it begins with was read a moment ago.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)

    import anyio

    from outboxd.adapters.configuration import load_settings
    from outboxd.adapters.logging import configure_logging
    from outboxd.assembly import Daemon
    from outboxd.core.children import children_of

    settings = load_settings(arguments.config, os.environ)
    specs = children_of(settings, arguments.only)
    configure_logging(settings, "supervisor")
    return int(anyio.run(Daemon(settings, specs, arguments.config, arguments.only).run))


def _open_standard_streams() -> None:
    """A closed one would be the number of the next socket or file, and get what is meant for it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, and for children too, which get ours.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")
