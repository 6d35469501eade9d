"""What long work at a terminal shares: a line of progress, and a Ctrl-C that waits."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def progress_line(what: str, expected: int) -> Iterator[Callable[[int], None]]:
    """Tells on a terminal how far it is; the total is what SQS estimated at the start."""

    shown = False

    def told(done: int) -> None:
        nonlocal shown
        if sys.stderr.isatty():
            shown = True
            total = max(done, expected)
            print(f"\r{what} {done} of about {total}", end="", file=sys.stderr, flush=True)

    try:
        yield told
    finally:
        if shown:
            print(file=sys.stderr)


@contextmanager
def stopped_by_sigint() -> Iterator[Callable[[], bool]]:
    """Whether there was a Ctrl-C; a second one is a KeyboardInterrupt at once."""
    stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        if stopped:
            raise KeyboardInterrupt
        stopped = True

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: stopped
    finally:
        signal.signal(signal.SIGINT, before)
