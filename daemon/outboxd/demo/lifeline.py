"""Any `outboxd` command as a process that ends with the one that started it, however that ended.

Run as `python -m outboxd.demo.lifeline COMMAND ...` with a pipe as standard input. Nothing is
ever written to it; its end says that the other process is gone, which SIGKILL says as well.
"""

import os
import runpy
import signal
import sys
import threading
import time

DRAIN_SECONDS = 2.0
"""What an orphan may still finish. Its database and its queues are gone too, so it is not much."""

HURRY_SECONDS = 1.5


def main() -> None:
    """Become the command."""
    end_with_standard_input()
    sys.argv = ["outboxd", *sys.argv[1:]]
    runpy.run_module("outboxd", run_name="__main__")


def end_with_standard_input() -> None:
    """From now on this process ends when its standard input does."""
    # A thread, because it must not depend on an event loop that works.
    threading.Thread(target=_await_the_end, daemon=True).start()


def _await_the_end() -> None:
    # Not through sys.stdin: its lock, held by a thread, aborts the interpreter when it exits.
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(DRAIN_SECONDS)
    for _ in range(2):  # the second one ends every child of `outboxd run` at once
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(HURRY_SECONDS / 2)
    os._exit(1)


if __name__ == "__main__":
    main()
