"""What long work at a terminal shares: a word when it lasts, a line of progress, and a Ctrl-C that
waits."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

WIDTH = 20
"""Signs of the bar: with the words beside it, a line of 80 holds it."""


@contextmanager
def told_when_slow(what: str, seconds: float) -> Iterator[None]:
    """Say on standard error what is waited for, if it takes longer than that."""
    timer = threading.Timer(seconds, sys.stderr.write, [f"outboxd: {what}\n"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Told(Protocol):
    """Hears how far it is, and what else there is to say."""

    def __call__(self, done: int, more: str = "") -> None: ...


@contextmanager
def progress_line(what: str, expected: int) -> Iterator[Told]:
    """Tells on a terminal how far it is; the total is what was estimated at the start."""

    shown = 0

    def told(done: int, more: str = "") -> None:
        nonlocal shown
        if sys.stderr.isatty():
            line = f"{what} {_bar(done, expected)} {done} of about {max(done, expected)}{more}"
            # Padded: a line that is shorter than the last one would leave its end behind.
            print(f"\r{line:{shown}}", end="", file=sys.stderr, flush=True)
            shown = len(line)

    try:
        yield told
    finally:
        if shown:
            print(file=sys.stderr)


def _bar(done: int, expected: int) -> str:
    """Full only at the end, so that nobody goes before it is."""
    filled = WIDTH if done >= expected else done * WIDTH // expected
    return f"[{'#' * filled:{WIDTH}}]"


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
