"""The thread that writes lines, so that nobody else waits for whoever reads them."""

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from io import UnsupportedOperation
from typing import TextIO

MOST_BYTES = 4 << 20
"""So much may wait to be written; beyond it lines are dropped, and counted."""

CLOSE_SECONDS = 1.0
"""How long the end of the process waits for lines that nobody takes."""


class Writer:
    """Writes whole lines in their order, and drops them while standard output takes no more.

    A write to a full pipe waits until somebody reads it. On the event loop that would be the end of
    everything: of heartbeats, of the watchdog, and of SIGTERM.
    """

    def __init__(self, stream: TextIO, tell_dropped: Callable[[int], str]) -> None:
        """`tell_dropped` makes the line that says how many are missing, once lines go on."""
        self._stream = stream
        self._descriptor = _descriptor_of(stream)
        self._tell_dropped = tell_dropped
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._dropped = 0
        self._news = threading.Condition()
        self._idle = True
        self._closing = False
        self._thread: threading.Thread | None = None

    def write(self, line: str) -> None:
        """Have the line written, at some time."""
        data = f"{line}\n".encode(errors="backslashreplace")
        with self._news:
            if self._bytes + len(data) > MOST_BYTES:
                self._dropped += 1
                return
            self._lines.append(data)
            self._bytes += len(data)
            self._idle = False
            self._closing = False
            if self._thread is None:
                # A daemon: a write that waits for ever must not keep the process from ending.
                self._thread = threading.Thread(target=self._work, name="log", daemon=True)
                self._thread.start()
            self._news.notify_all()

    def flush(self, seconds: float = CLOSE_SECONDS) -> None:
        """Return once everything is written, or when that takes too long."""
        with self._news:
            self._news.wait_for(lambda: self._idle, seconds)

    def close(self) -> None:
        """End the thread once everything is written. Another line begins another thread."""
        self.flush()
        with self._news:
            self._closing = True
            self._news.notify_all()

    def _work(self) -> None:
        while True:
            with self._news:
                while not self._lines:
                    self._idle = True
                    self._news.notify_all()
                    if self._closing:
                        self._thread = None
                        return
                    self._news.wait()
                data = self._lines.popleft()
                dropped, self._dropped = self._dropped, 0
            # What reads nothing, or is full, or was closed, is nobody whom a line could tell.
            with suppress(OSError, ValueError):
                self._put(data)
                if dropped:
                    self._put(f"{self._tell_dropped(dropped)}\n".encode())
            with self._news:
                self._bytes -= len(data)

    def _put(self, data: bytes) -> None:
        if self._descriptor is None:
            self._stream.write(data.decode())
            self._stream.flush()
            return
        # Not through the stream: a thread that waits in there keeps its lock, and the interpreter
        # aborts when it cannot get that lock at its end.
        while data:
            data = data[os.write(self._descriptor, data) :]


def _descriptor_of(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (UnsupportedOperation, AttributeError):
        return None  # a stream in memory
