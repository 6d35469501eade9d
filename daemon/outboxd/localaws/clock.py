"""The one source of time: real time that tests and users may move forward."""

import time
from collections.abc import Callable


class Clock:
    """Seconds since the epoch; never goes back, and jumps ahead when told to.

    Built on the monotonic clock, so that a step of the machine's wall clock neither ends nor
    prolongs a visibility timeout.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, epoch: float | None = None
    ) -> None:
        self._monotonic = monotonic
        self._base = (time.time() if epoch is None else epoch) - monotonic()
        self._advanced = 0.0
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> float:
        return self._base + self._monotonic()

    @property
    def advanced(self) -> float:
        """Seconds this clock has been moved ahead of real time."""
        return self._advanced

    def advance(self, seconds: float) -> None:
        """Jump ahead and tell everyone who waits for a time. Raises ValueError for a step back."""
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"the clock moves forward only, not by {seconds} s")
        self._base += seconds
        self._advanced += seconds
        for listener in tuple(self._listeners):
            listener()

    def on_advance(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after every jump; call what this returns to stop that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
