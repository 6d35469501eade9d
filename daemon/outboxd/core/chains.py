"""At most one event of an aggregate in flight: who may go, who has to wait, and for what."""

import heapq
from collections import deque
from collections.abc import Collection, Iterable
from enum import StrEnum

import msgspec

from outboxd.core.outbox import StoredEvent, bucket_of

PARKED_LIMIT = 100_000
"""How many aggregates that have to wait are remembered (some 20 MB), and left out of every read.
Beyond it reads return them again and again, and may not reach the aggregates behind them."""


class Waiting(StrEnum):
    """What an aggregate waits for."""

    BACKOFF = "backoff"
    MARK = "mark"
    DESTINATION = "destination"
    ROUTE = "route"


class Parked(msgspec.Struct, frozen=True, gc=False):
    """An aggregate whose next event, `seq`, has to wait, at the longest `until`."""

    why: Waiting
    until: float
    seq: int
    destination: str = ""


class Chains:
    """The aggregates that the relay knows of, by key.

    A moving one has a chain: its next events in order, the first of which (the head) is on its way.
    A parked one has nothing in memory but the reason. Both are left out of reads, so that whatever
    a read returns is the lowest pending event of an aggregate that rests.
    """

    def __init__(self) -> None:
        self._moving: dict[int, deque[StoredEvent]] = {}
        self._parked: dict[int, Parked] = {}
        self._expiries: list[tuple[float, int]] = []
        self._parked_text: str | None = None
        self.events = 0
        """Events in memory."""
        self.payload_length = 0
        """Characters of their payloads."""

    def admit(self, page: Iterable[StoredEvent]) -> list[StoredEvent]:
        """Take up what a read returned, in the order of `seq`; returns the new heads.

        An aggregate that moves or is parked was left out of the read, so a row of it here comes
        from a memory that was full: it is left to a later read.
        """
        started: dict[int, deque[StoredEvent]] = {}
        heads: list[StoredEvent] = []
        for event in page:
            chain = started.get(event.key)
            if chain is None:
                if event.key in self._moving or event.key in self._parked:
                    continue
                chain = started[event.key] = self._moving[event.key] = deque()
                heads.append(event)
            chain.append(event)
            self.events += 1
            self.payload_length += len(event.payload)
        return heads

    def advance(self, key: int) -> StoredEvent | None:
        """The head has been accepted: the next event of the aggregate, if it is in memory."""
        chain = self._moving[key]
        self._forgot(chain.popleft())
        if chain:
            return chain[0]
        del self._moving[key]
        return None

    def drop(self, key: int) -> None:
        """Forget the aggregate's events; the next read finds them again."""
        for event in self._moving.pop(key):
            self._forgot(event)

    def park(self, key: int, parked: Parked) -> None:
        """Forget the aggregate's events and leave it alone for a while."""
        if key in self._moving:
            self.drop(key)
        if len(self._parked) >= PARKED_LIMIT and parked.why is not Waiting.MARK:
            return
        self._parked[key] = parked
        self._parked_text = None
        if parked.until != float("inf"):
            heapq.heappush(self._expiries, (parked.until, key))

    def unpark(self, keys: Iterable[int]) -> None:
        """These need not wait any longer."""
        for key in keys:
            self._parked.pop(key, None)
        self._parked_text = None

    def expire(self, now: float) -> None:
        """Unpark those whose time has come."""
        while self._expiries and self._expiries[0][0] <= now:
            _, key = heapq.heappop(self._expiries)
            parked = self._parked.get(key)
            if parked is not None and parked.until <= now:
                self.unpark((key,))

    @property
    def next_expiry(self) -> float:
        """When the next one may be unparked; infinity when none has a time."""
        return self._expiries[0][0] if self._expiries else float("inf")

    @property
    def moving(self) -> int:
        """How many aggregates have a head on its way."""
        return len(self._moving)

    @property
    def parked(self) -> int:
        """How many aggregates wait."""
        return len(self._parked)

    def waiting_for(self, destination: str) -> list[int]:
        """The aggregates parked because of a destination."""
        return [key for key, parked in self._parked.items() if parked.destination == destination]

    def first_waiting_for(self, destination: str, count: int) -> list[int]:
        """The `count` of them with the oldest events."""
        waiting = self.waiting_for(destination)
        return heapq.nsmallest(count, waiting, key=lambda key: self._parked[key].seq)

    def parked_count(self, why: Collection[Waiting]) -> int:
        """How many aggregates wait for one of these."""
        return sum(1 for parked in self._parked.values() if parked.why in why)

    def forget_parked(self, buckets: Collection[int]) -> None:
        """These buckets are no longer ours; their aggregates are someone else's to hold back."""
        self.unpark([key for key in self._parked if bucket_of(key) in buckets])

    def excluded(self) -> str:
        """The keys to leave out of a read, with commas between. Tens of thousands are possible, and
        the parked ones seldom change, so their part is kept."""
        if self._parked_text is None:
            self._parked_text = ",".join(map(str, self._parked))
        moving = ",".join(map(str, self._moving))
        separator = "," if moving and self._parked_text else ""
        return moving + separator + self._parked_text

    def _forgot(self, event: StoredEvent) -> None:
        self.events -= 1
        self.payload_length -= len(event.payload)
