"""Which buckets this relay holds, how long it may trust that, and how many are its share."""

from collections.abc import Iterator, Mapping

from outboxd.core.outbox import BUCKETS

TOLERANCE = 1
"""A relay gives nothing up for being one above its share: two relays would pass it to and fro."""


class Holding:
    """One bucket of ours. Losing and winning it again makes another Holding, so that answers and
    results that belong to the old one are told apart from those of the new one."""

    __slots__ = ("bucket", "deadline", "epoch", "leaving", "lost", "open", "rescan_at", "start")

    def __init__(self, bucket: int, epoch: int, deadline: float) -> None:
        self.bucket = bucket
        self.epoch = epoch
        self.deadline = deadline
        self.leaving = False
        self.lost = False
        self.start = 0
        """All pending rows up to this one belong to parked lanes: see core.windows."""
        self.rescan_at = 0.0
        self.open = 0
        """How many of its events are between taken up and settled; it is given up only at 0, or
        the next owner would publish what is accepted and not yet marked a second time."""

    @property
    def active(self) -> bool:
        """New events of this bucket may be taken up."""
        return not self.leaving and not self.lost

    def trusted_for(self, seconds: float, now: float) -> bool:
        """Whether the lease outlasts a call that may take so long. Asked in the sending thread."""
        return not self.lost and now + seconds < self.deadline


class Holdings:
    """All the buckets that this relay believes to hold."""

    def __init__(self) -> None:
        self._by_bucket: dict[int, Holding] = {}

    def __len__(self) -> int:
        return len(self._by_bucket)

    def __iter__(self) -> Iterator[Holding]:
        return iter(self._by_bucket.values())

    def get(self, bucket: int) -> Holding | None:
        return self._by_bucket.get(bucket)

    def gained(self, epochs: Mapping[int, int], deadline: float) -> None:
        """The database has just given us these buckets."""
        for bucket, epoch in epochs.items():
            if (former := self._by_bucket.get(bucket)) is not None:
                self.dropped(former)
            self._by_bucket[bucket] = Holding(bucket, epoch, deadline)

    def renewed(self, epochs: Mapping[int, int], deadline: float) -> list[Holding]:
        """The database knows us as the owner of exactly these; returns the holdings we lost.

        One that we do not know of was won by a claim whose answer got lost, and is ours as well.
        """
        lost = [
            holding
            for holding in self._by_bucket.values()
            if epochs.get(holding.bucket) != holding.epoch
        ]
        for holding in lost:
            self.dropped(holding)
        for bucket, epoch in epochs.items():
            known = self._by_bucket.get(bucket)
            if known is None:
                self._by_bucket[bucket] = Holding(bucket, epoch, deadline)
            else:
                known.deadline = deadline
        return lost

    def dropped(self, holding: Holding) -> None:
        """This holding is over; whoever still has it in hand can see so."""
        holding.lost = True
        if self._by_bucket.get(holding.bucket) is holding:
            del self._by_bucket[holding.bucket]

    def active(self) -> list[Holding]:
        return [holding for holding in self._by_bucket.values() if holding.active]

    def readable(self, now: float, sending_seconds: float) -> list[Holding]:
        """Those whose events may be taken up: reading what may not be sent would only spin."""
        return [
            holding
            for holding in self._by_bucket.values()
            if holding.active and holding.trusted_for(sending_seconds, now)
        ]

    def to_leave(self, live_relays: int) -> list[Holding]:
        """The holdings above our share, idle ones first."""
        active = self.active()
        surplus = len(active) - share(live_relays)
        if surplus <= TOLERANCE:
            return []
        return sorted(active, key=lambda holding: (holding.open, holding.bucket))[:surplus]


def share(live_relays: int) -> int:
    """How many buckets one relay should hold."""
    return -(-BUCKETS // max(1, live_relays))


def lacking(held: int, live_relays: int) -> int:
    """How many free buckets to claim."""
    return max(0, share(live_relays) - held)
