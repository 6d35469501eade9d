"""Who is to be looked at when: a schedule whose entries may move."""

import heapq
import math
from collections.abc import Hashable
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

STALE_KEPT = 64


class Appointments(Generic[K]):
    """At most one moment per key; `math.inf` stands for never."""

    def __init__(self) -> None:
        self._moments: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = count()

    def make(self, key: K, at: float) -> None:
        """See `key` at `at`, instead of whenever it was to be seen."""
        if self._moments.get(key) == at:
            return
        self._moments[key] = at
        # The number decides between equal moments; keys have no order.
        heapq.heappush(self._heap, (at, next(self._numbers), key))
        self._clear_out()

    def cancel(self, key: K) -> None:
        """Do not see `key` at all."""
        self._moments.pop(key, None)

    @property
    def next_at(self) -> float:
        """The earliest moment."""
        while self._heap and not self._stands(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else math.inf

    def take(self, now: float) -> K | None:
        """A key whose moment has come, the earliest first; its appointment is over with that."""
        if self.next_at > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._moments[key]
        return key

    def __len__(self) -> int:
        return len(self._moments)

    @property
    def kept(self) -> int:
        """How many places the schedule occupies, those of cancelled appointments included."""
        return len(self._heap)

    def _stands(self, place: tuple[float, int, K]) -> bool:
        at, _, key = place
        return self._moments.get(key) == at

    def _clear_out(self) -> None:
        """Without it, appointments hours ahead would outlive a million cancelled keys."""
        if len(self._heap) > 2 * len(self._moments) + STALE_KEPT:
            self._heap = [place for place in self._heap if self._stands(place)]
            heapq.heapify(self._heap)
