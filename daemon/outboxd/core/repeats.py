"""How often the same may be said: the first few in full, the rest as one line with a count."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Said = TypeVar("Said")

WINDOW_SECONDS = 60.0
MOST_KINDS = 1000


class _Window(Generic[Said]):
    __slots__ = ("admitted", "began_at", "held", "last")

    def __init__(self, began_at: float) -> None:
        self.began_at = began_at
        self.admitted = 0
        self.held = 0
        self.last: Said | None = None


class Repeats(Generic[Said]):
    """Lets `limit` of a kind pass in each window of a minute, which begins with the first of them.

    A limit of 0 lets everything pass. Of more than `most_kinds` kinds at a time the oldest window
    ends early, so that what is remembered stays small.
    """

    def __init__(
        self,
        limit: int,
        *,
        window_seconds: float = WINDOW_SECONDS,
        most_kinds: int = MOST_KINDS,
    ) -> None:
        self._limit = limit
        self._window_seconds = window_seconds
        self._most_kinds = most_kinds
        # In the order in which they began, which is the order in which they end.
        self._windows: OrderedDict[Hashable, _Window[Said]] = OrderedDict()

    def admit(self, kind: Hashable, said: Said, now: float) -> bool:
        """Whether it may pass; if not it is counted, and kept as the last of its kind.

        What has ended by `now` is to be taken out with `ended` before.
        """
        if self._limit == 0:
            return True
        window = self._windows.get(kind)
        if window is None:
            window = self._windows[kind] = _Window(now)
        if window.admitted < self._limit:
            window.admitted += 1
            return True
        window.held += 1
        window.last = said
        return False

    def ended(self, now: float) -> Iterator[tuple[Said, int]]:
        """The last that was held back of each kind whose minute is over, and how many were."""
        while self._windows:
            kind, window = next(iter(self._windows.items()))
            over = now - window.began_at >= self._window_seconds
            if not over and len(self._windows) <= self._most_kinds:
                return
            del self._windows[kind]
            if window.last is not None:
                yield window.last, window.held

    def all(self) -> Iterator[tuple[Said, int]]:
        """The same for every kind, at the end."""
        windows = list(self._windows.values())
        self._windows.clear()
        for window in windows:
            if window.last is not None:
                yield window.last, window.held

    def next_end(self) -> float | None:
        """When the next minute is over of which something was held back."""
        held = [each.began_at for each in self._windows.values() if each.held]
        return min(held) + self._window_seconds if held else None
