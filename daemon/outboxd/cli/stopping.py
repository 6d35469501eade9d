"""Commands that serve until somebody ends them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a service manager, and a terminal that is closed."""


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that the first signal sets; a second one interrupts whatever does not stop."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    previous = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
