"""The last 15 minutes, in a space that does not grow."""

from array import array
from collections.abc import Hashable, Iterable
from math import isnan, nan

STEP_SECONDS = 10.0
STEPS = 90
RECENT_STEPS = 6
"""What rates and latencies are of: about the last minute."""

MAX_SERIES = 4096
"""720 bytes each, so 3 MB at most, however many queues a configuration has."""


class Ring:
    """The newest values of one series; None is a gap."""

    def __init__(self, steps: int = STEPS) -> None:
        self._values = array("d", [nan]) * steps
        self._next = 0
        self._filled = 0

    def add(self, value: float | None) -> None:
        """The value of the step that has just ended."""
        self._values[self._next] = nan if value is None else value
        self._next = (self._next + 1) % len(self._values)
        self._filled = min(self._filled + 1, len(self._values))

    def values(self) -> tuple[float | None, ...]:
        """Oldest first."""
        start = self._next - self._filled
        ordered = (self._values[start + step] for step in range(self._filled))
        return tuple(None if isnan(value) else value for value in ordered)

    def total(self) -> float | None:
        """The sum of what is known; None if nothing is."""
        return total(self.values())


class History:
    """Rings by key. Beyond the cap new keys are not remembered, and nothing is known of them."""

    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._rings: dict[Hashable, Ring] = {}

    def add(self, key: Hashable, value: float | None) -> None:
        """Remember a value of the step that has just ended."""
        ring = self._rings.get(key)
        if ring is None:
            if len(self._rings) >= self._max_series:
                return
            ring = self._rings[key] = Ring()
        ring.add(value)

    def keep(self, keys: Iterable[Hashable]) -> None:
        """Forget all others: a reload took their queue or child away."""
        kept = set(keys)
        for key in self._rings.keys() - kept:
            del self._rings[key]

    def values(self, key: Hashable) -> tuple[float | None, ...]:
        """Oldest first; empty if nothing is remembered."""
        ring = self._rings.get(key)
        return ring.values() if ring is not None else ()

    def __len__(self) -> int:
        return len(self._rings)


def total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
