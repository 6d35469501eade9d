"""The entry point of every child process: `python -m outboxd.child NAME --fd N --supervisor PID`.

The first lines matter most: until a signal has a handler its default action ends the process, and
until the process is tied to its supervisor it may be left alone. So nothing heavy is imported at
the top of this module.
"""

import argparse
import logging
import os
import select
import signal
import threading
import time
from types import FrameType

from outboxd.core.exit_codes import ExitCode
from outboxd.parentage import tie_to

ORPHAN_SECONDS = 5.0
"""How long a child may go on settling after its supervisor has gone."""

_early_sigterm = threading.Event()


def main() -> None:
    """Tie this process to its supervisor, then live as the actor that NAME asks for."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _remember_sigterm)
    tie_to(arguments.supervisor)
    threading.Thread(target=_end_after_eof, args=[arguments.fd], daemon=True).start()

    from outboxd.childhood import live  # heavy: only now

    code = live(arguments.name, arguments.fd, _early_sigterm.is_set)
    # Not sys.exit, which waits for threads: a handler that outlived the drain may still be in one.
    # Its transaction ends with this process.
    logging.shutdown()
    os._exit(code)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="outboxd.child", description=__doc__)
    parser.add_argument("name", help="relay, extender or consumer:<queue>/<number>")
    parser.add_argument("--fd", type=int, required=True, help="the socket to the supervisor")
    parser.add_argument("--supervisor", type=int, required=True, help="the supervisor's pid")
    return parser.parse_args()


def _remember_sigterm(number: int, frame: FrameType | None) -> None:
    _early_sigterm.set()


def _end_after_eof(fd: int) -> None:
    """The lifeline: this process does not outlive its supervisor by more than ORPHAN_SECONDS.

    A thread, because the event loop may be stuck in a handler; it reads nothing, since what the
    socket holds is for the event loop.
    """
    ended = select.poll()
    ended.register(os.dup(fd), 0)  # no events: the end of the peer is reported unasked
    ended.poll()
    time.sleep(ORPHAN_SECONDS)
    os._exit(ExitCode.ORPHANED)


if __name__ == "__main__":
    main()
