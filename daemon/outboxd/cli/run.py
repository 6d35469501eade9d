"""`outboxd run`: the daemon itself."""

import argparse
import ctypes
import logging
import os
import signal
import sys
import threading
import time
from typing import Any

from outboxd.core.exit_codes import ExitCode

PARENT_POLL_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1

log = logging.getLogger(__name__)


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "run",
        help="run the daemon until SIGTERM or Ctrl-C",
        description=(
            "Starts the supervisor with its child processes: the outbox relay, one consumer pool "
            "per queue, and the visibility extender. SIGTERM and Ctrl-C drain; a second Ctrl-C "
            "ends everything now."
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
    parser.add_argument(
        "--exit-with-parent",
        action="store_true",
        help="drain and exit when the process that started this one is gone",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run until a stop; the exit code says why it ended."""
    # As PID 1 of a container a process without a handler ignores SIGTERM altogether.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.OK))
    if arguments.exit_with_parent:
        _exit_with_parent(os.getppid())

    import anyio

    from outboxd.adapters.configuration import load_settings
    from outboxd.adapters.logging import configure_logging
    from outboxd.assembly import Daemon
    from outboxd.core.children import children_of

    settings = load_settings(arguments.config, os.environ)
    specs = children_of(settings, arguments.only)
    configure_logging(settings.logging, "supervisor")
    return int(anyio.run(Daemon(settings, specs).run))


def _exit_with_parent(parent: int) -> None:
    """SIGTERM to ourselves, which drains, once `parent` is no longer our parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
