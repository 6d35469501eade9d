"""Many deadlines, of which the earliest is wanted."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Key = TypeVar("Key", int, str)


class Deadlines(Generic[Key]):
    """One time per key; setting, cancelling and finding the earliest cost O(log n), amortised.

    A changed or cancelled deadline stays in the heap until it surfaces. Long timeouts would let
    such leftovers pile up (every deleted message leaves one for up to twelve hours), so the heap
    is rebuilt whenever they outnumber the living.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Key]] = []
        self._current: dict[Key, int] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._current)

    def set(self, key: Key, when: float) -> None:
        """Give `key` this deadline; equal times come due in the order in which they were set."""
        self._number += 1
        self._current[key] = self._number
        heappush(self._heap, (when, self._number, key))
        if len(self._heap) > 2 * len(self._current) + 64:
            self._rebuild()

    def cancel(self, key: Key) -> None:
        self._current.pop(key, None)

    def clear(self) -> None:
        self._heap.clear()
        self._current.clear()

    def earliest(self) -> float | None:
        heap = self._heap
        while heap:
            when, number, key = heap[0]
            if self._current.get(key) == number:
                return when
            heappop(heap)
        return None

    def due(self, now: float) -> Iterator[Key]:
        """Take out, earliest first, every key whose time has come."""
        # Not a local name for the heap: whoever iterates may set deadlines, which may rebuild it.
        while self._heap and self._heap[0][0] <= now:
            _, number, key = heappop(self._heap)
            if self._current.get(key) == number:
                del self._current[key]
                yield key

    def _rebuild(self) -> None:
        self._heap = [entry for entry in self._heap if self._current.get(entry[2]) == entry[1]]
        heapify(self._heap)
