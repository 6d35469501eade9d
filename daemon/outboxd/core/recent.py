"""A set that cannot grow without bound."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Recent(Generic[T]):
    """Remembers the newest `limit` members; older ones are forgotten."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._members: OrderedDict[T, None] = OrderedDict()

    def add(self, member: T) -> None:
        """Remember a member; one that is known becomes the newest."""
        self._members[member] = None
        self._members.move_to_end(member)
        while len(self._members) > self._limit:
            self._members.popitem(last=False)

    def __contains__(self, member: T) -> bool:
        return member in self._members
