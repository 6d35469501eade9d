"""Where the reads of our buckets have come to: which buckets are next, and which of their rows."""

from collections.abc import Collection, Sequence

import msgspec

from outboxd.actors.relay.surroundings import Memory, Surroundings
from outboxd.core.holdings import Holding
from outboxd.core.horizon import Horizon
from outboxd.core.outbox import StoredEvent
from outboxd.core.turns import Turns
from outboxd.core.windows import Window, Windows, later_start
from outboxd.ports.outbox import Outbox


class Look(msgspec.Struct, frozen=True):
    """One read: the buckets it asks for, in which windows, and what moved when it began."""

    holdings: Sequence[Holding]
    windows: dict[int, Window]
    first_moving: dict[int, int]
    began_at: float


class Scan:
    """Plans the reads and learns from how they went."""

    def __init__(self, memory: Memory, around: Surroundings) -> None:
        self._holdings, self._chains, _ = memory
        self._clock = around.clock
        self._horizon = Horizon()
        self._windows = Windows(around.dice)
        self._turns = Turns()

    async def sample(self, outbox: Outbox) -> None:
        """Look at the database's transactions, if it is time and there may be much to pass over.
        Raises Unavailable."""
        now = self._clock()
        if (self._windows.slow or self._chains.parked) and self._horizon.wants_sample(now):
            self._horizon.sampled(await outbox.sample(), now)

    def plan(self, readable: Collection[Holding]) -> Look | None:
        """The next read, if there is anything to ask for."""
        now = self._clock()
        holdings = self._turns.next(readable, now)
        if not holdings:
            return None
        for bucket, seq in self._chains.reopened().items():
            if (holding := self._holdings.get(bucket)) is not None:
                holding.start = min(holding.start, seq - 1)
        windows = self._windows.open(
            holdings, self._horizon.seq, now, walls=self._chains.parked > 0
        )
        # Whether or not reads are slow yet: this one may be what makes them so, and what moves now
        # may rest, with more of its lane behind it, before it answers.
        return Look(holdings, windows, self._chains.first_moving(), now)

    def read(self, look: Look, page: Sequence[StoredEvent], ours: int) -> bool:
        """The read has answered; returns whether some rows of our buckets are still to be looked
        at, whatever the page holds."""
        now = self._clock()
        horizon = self._horizon.seq
        self._windows.read(look.holdings, horizon, now - look.began_at, now)
        self._turns.read(look.holdings, ours)
        return self._begin_later(look, page, horizon) or self._turns.partial

    def cut_off(self, look: Look) -> None:
        """The read took longer than a statement may."""
        now = self._clock()
        took = now - look.began_at
        self._windows.cut_off(look.holdings, took, now)
        self._turns.cut_off(look.holdings, took, now)

    def forget(self) -> None:
        """The next answer may come from another database."""
        self._horizon.forget()
        for holding in self._holdings:
            holding.start = 0

    def _begin_later(self, look: Look, page: Sequence[StoredEvent], horizon: int) -> bool:
        """What this read had to pass over the next one need not, unless it is unparked; returns
        whether a window has moved on."""
        if not self._windows.slow:
            return False
        first_returned: dict[int, int] = {}
        for event in page:
            first_returned.setdefault(event.bucket, event.seq)
        moved_on = False
        for holding in look.holdings:
            bucket, window = holding.bucket, look.windows[holding.bucket]
            holding.start = later_start(
                window, horizon, first_returned.get(bucket), look.first_moving.get(bucket)
            )
            moved_on = moved_on or (window.ends and holding.start > window.after)
        return moved_on
