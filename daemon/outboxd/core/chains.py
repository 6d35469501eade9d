"""At most one event of a lane in flight: who may go, who has to wait, and for what."""

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum

import msgspec

from outboxd.core.lanes import row_alone_in
from outboxd.core.outbox import StoredEvent, bucket_of

PARKED_LIMIT = 100_000
"""How many lanes that have to wait are remembered (some 20 MB), and left out of every read.
Beyond it reads return them again and again, and may not reach the events behind them."""


class Waiting(StrEnum):
    """What a lane waits for."""

    BACKOFF = "backoff"
    MARK = "mark"
    DESTINATION = "destination"
    ROUTE = "route"


class Parked(msgspec.Struct, frozen=True, gc=False):
    """A lane whose next event, `seq`, has to wait, at the longest `until`."""

    why: Waiting
    until: float
    seq: int
    destination: str = ""


class Chains:
    """The lanes that the relay knows of; `lane_of` says which is an event's.

    A moving one has a chain: its next events in order, the first of which (the head) is on its way.
    A parked one has nothing in memory but the reason. Both are left out of reads, so that whatever
    a read returns is the lowest pending event of a lane that rests.

    An aggregate whose events leave in order is one lane. An event for whose destinations order does
    not matter is a lane of its own: the same rules then hold up nobody.
    """

    def __init__(self, lane_of: Callable[[StoredEvent], int]) -> None:
        self.lane_of = lane_of
        self._moving: dict[int, deque[StoredEvent]] = {}
        self._parked: dict[int, Parked] = {}
        self._expiries: list[tuple[float, int]] = []
        self._parked_text: str | None = None
        self._parked_alone: list[int] | None = None
        self._reopened: dict[int, int] = {}
        self.events = 0
        """Events in memory."""
        self.payload_length = 0
        """Characters of their payloads."""

    def admit(self, page: Iterable[StoredEvent]) -> list[StoredEvent]:
        """Take up what a read returned, in the order of `seq`; returns the new heads.

        A lane that moves or is parked was left out of the read, so a row of it here comes from a
        memory that was full: it is left to a later read.
        """
        started: dict[int, deque[StoredEvent]] = {}
        heads: list[StoredEvent] = []
        for event in page:
            lane = self.lane_of(event)
            chain = started.get(lane)
            if chain is None:
                if lane in self._moving or lane in self._parked:
                    continue
                chain = started[lane] = self._moving[lane] = deque()
                heads.append(event)
            chain.append(event)
            self.events += 1
            self.payload_length += len(event.payload)
        return heads

    def advance(self, lane: int) -> StoredEvent | None:
        """The head has been accepted: the next event of its lane, if it is in memory."""
        chain = self._moving[lane]
        self._forgot(chain.popleft())
        if chain:
            return chain[0]
        del self._moving[lane]
        return None

    def drop(self, lane: int) -> None:
        """Forget the lane's events; the next read finds them again."""
        for event in self._moving.pop(lane):
            self._forgot(event)

    def park(self, lane: int, parked: Parked) -> None:
        """Forget the lane's events and leave it alone for a while."""
        if lane in self._moving:
            self.drop(lane)
        if len(self._parked) >= PARKED_LIMIT and parked.why is not Waiting.MARK:
            return
        self._parked[lane] = parked
        self._changed()
        if parked.until != float("inf"):
            heapq.heappush(self._expiries, (parked.until, lane))

    def unpark(self, lanes: Iterable[int]) -> None:
        """These need not wait any longer."""
        for lane in lanes:
            if (parked := self._parked.pop(lane, None)) is not None:
                bucket = bucket_of(lane)
                lowest = self._reopened.get(bucket, parked.seq)
                self._reopened[bucket] = min(lowest, parked.seq)
        self._changed()

    def expire(self, now: float) -> None:
        """Unpark those whose time has come."""
        while self._expiries and self._expiries[0][0] <= now:
            _, lane = heapq.heappop(self._expiries)
            parked = self._parked.get(lane)
            if parked is not None and parked.until <= now:
                self.unpark((lane,))

    @property
    def next_expiry(self) -> float:
        """When the next one may be unparked; infinity when none has a time."""
        return self._expiries[0][0] if self._expiries else float("inf")

    @property
    def moving(self) -> int:
        """How many lanes have a head on its way."""
        return len(self._moving)

    @property
    def parked(self) -> int:
        """How many lanes wait."""
        return len(self._parked)

    def waiting_for(self, destination: str) -> list[int]:
        """The lanes parked because of a destination."""
        return [lane for lane, parked in self._parked.items() if parked.destination == destination]

    def first_waiting_for(self, destination: str, count: int) -> list[int]:
        """The `count` of them with the oldest events."""
        waiting = self.waiting_for(destination)
        return heapq.nsmallest(count, waiting, key=lambda lane: self._parked[lane].seq)

    def parked_count(self, why: Collection[Waiting]) -> int:
        """How many lanes wait for one of these."""
        return sum(1 for parked in self._parked.values() if parked.why in why)

    def forget_parked(self, buckets: Collection[int]) -> None:
        """These buckets are no longer ours; their lanes are someone else's to hold back."""
        self.unpark([lane for lane in self._parked if bucket_of(lane) in buckets])

    def excluded_keys(self) -> str:
        """The aggregates to leave out of a read, with commas between. Tens of thousands are
        possible, and the parked ones seldom change, so their part is kept."""
        if self._parked_text is None:
            self._parked_text = _keys_of(self._parked)
        moving = _keys_of(self._moving)
        separator = "," if moving and self._parked_text else ""
        return moving + separator + self._parked_text

    def excluded_seqs(self) -> list[int]:
        """The rows to leave out of a read that are lanes of their own."""
        if self._parked_alone is None:
            self._parked_alone = _rows_of(self._parked)
        return _rows_of(self._moving) + self._parked_alone

    def reopened(self) -> dict[int, int]:
        """The lowest event, by bucket, of the lanes that were unparked since this was asked last:
        a read that passed over them must now look there again."""
        reopened, self._reopened = self._reopened, {}
        return reopened

    def first_moving(self) -> dict[int, int]:
        """The lowest event under way, by bucket."""
        first: dict[int, int] = {}
        for lane, chain in self._moving.items():
            bucket, seq = bucket_of(lane), chain[0].seq
            first[bucket] = min(first.get(bucket, seq), seq)
        return first

    def _changed(self) -> None:
        self._parked_text = self._parked_alone = None

    def _forgot(self, event: StoredEvent) -> None:
        self.events -= 1
        self.payload_length -= len(event.payload)


def _keys_of(lanes: Iterable[int]) -> str:
    return ",".join(str(lane) for lane in lanes if row_alone_in(lane) is None)


def _rows_of(lanes: Iterable[int]) -> list[int]:
    return [row for lane in lanes if (row := row_alone_in(lane)) is not None]
