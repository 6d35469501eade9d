"""Events wait for a destination in order, and leave it in packs that its limits allow."""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class PackLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a destination takes in one call; sizes are bytes of UTF-8, attributes included."""

    entries: int
    pack_bytes: int
    entry_bytes: int


class Packer(Generic[T]):
    """The items that wait, first in first out, with their sizes."""

    def __init__(self, limits: PackLimits) -> None:
        self.limits = limits
        self._waiting: deque[tuple[T, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """A pack that waiting any longer cannot make larger is ready."""
        return len(self._waiting) >= self.limits.entries or self._bytes >= self.limits.pack_bytes

    def add(self, item: T, size: int) -> None:
        """Put an item last; its size is at most the limit of one entry."""
        self._waiting.append((item, size))
        self._bytes += size

    def take(self, at_most: int) -> list[T]:
        """The next pack: the longest run from the front within the limits and `at_most` items.

        Never reaches past an item that does not fit: an item that others overtake again and again
        would wait for ever. A single item always leaves, whatever its size.
        """
        pack: list[T] = []
        pack_bytes = 0
        most = min(at_most, self.limits.entries)
        while self._waiting and len(pack) < most:
            item, size = self._waiting[0]
            if pack and pack_bytes + size > self.limits.pack_bytes:
                break
            self._waiting.popleft()
            pack.append(item)
            pack_bytes += size
        self._bytes -= pack_bytes
        return pack

    def withdraw(self, chosen: Callable[[T], bool]) -> list[T]:
        """Take out all chosen items, in order; the others keep their places."""
        withdrawn = [item for item, _ in self._waiting if chosen(item)]
        if withdrawn:
            self._waiting = deque(pair for pair in self._waiting if not chosen(pair[0]))
            self._bytes = sum(size for _, size in self._waiting)
        return withdrawn
