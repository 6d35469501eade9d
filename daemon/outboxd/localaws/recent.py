"""What happened within the last few minutes."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """A mapping that forgets an entry a fixed time after it was put in."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._entries: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: Key, value: Value, now: float) -> None:
        self._entries.pop(key, None)
        self._entries[key] = (now + self._seconds, value)

    def get(self, key: Key, now: float) -> Value | None:
        self._drop_old(now)
        entry = self._entries.get(key)
        return None if entry is None else entry[1]

    def clear(self) -> None:
        self._entries.clear()

    def _drop_old(self, now: float) -> None:
        # The stay is the same for all, so the order of entry is the order of leaving.
        while self._entries:
            oldest = next(iter(self._entries))
            if self._entries[oldest][0] > now:
                return
            del self._entries[oldest]
