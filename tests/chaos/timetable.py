"""What is to be done at which second of a run."""

import heapq
import time
from collections.abc import Callable
from itertools import count

Say = Callable[[str], None]


class Timetable:
    """Steps at their times, done one after the other by whoever calls `work` often."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._began_at = time.monotonic()
        self._order = count()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began_at

    @property
    def waiting(self) -> bool:
        """Whether anything is still to be done."""
        return bool(self._waiting)

    def later(self, at: float, step: Callable[[], None]) -> None:
        """Do it once `now` is at least `at`."""
        heapq.heappush(self._waiting, (at, next(self._order), step))

    def work(self) -> None:
        """Do everything that is due."""
        while self._waiting and self._waiting[0][0] <= self.now:
            heapq.heappop(self._waiting)[2]()

    def tell(self, what: str) -> None:
        """Say what has been done, and when."""
        self._say(f"{self.now:7.2f} s  {what}")
