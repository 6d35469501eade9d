"""From which row on a read has to look, when looking from the first one on takes too long.

The events of a blocked aggregate are a wall: each read has to pass over all of them. Beyond the
wall is not simply where the last read ended: a transaction that took a lower number and commits
later would be found too late, after its successors. So a read may begin after a row only if

- every row up to it is committed or will never be, which `Horizon` finds out, and
- those of them that are pending belong to lanes that are parked (`core.chains`).
"""

from collections import deque
from collections.abc import Collection

import msgspec

from outboxd.core.holdings import Holding
from outboxd.core.retry import Dice

GRACE_SECONDS = 5.0
"""A transaction takes the number of a row a moment before it has an id of its own, by which it
would be known to be open; this is far longer."""

SAMPLE_SECONDS = 1.0
SAMPLES = 128
"""How many are remembered, so far apart, while some transaction does not end."""

SLOW_SECONDS = 0.1
"""A read that takes less begins at the first row: then whatever becomes pending, be it by an
operator, is found at once."""

RESCAN_SECONDS = 10.0
RESCAN_SHARE = 20.0
"""How long reads of a bucket may begin later until one begins at its first row again, in seconds
and in times of what that took."""


class Sample(msgspec.Struct, frozen=True):
    """The database at one moment: transactions below `oldest_open` have ended, none has an id of
    `next_id` or above yet, and `last_seq` has been taken."""

    oldest_open: int
    next_id: int
    last_seq: int


class Horizon:
    """Up to which row nothing can be committed any more."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Sample]] = deque(maxlen=SAMPLES)
        self.seq = 0

    def sampled(self, sample: Sample, now: float) -> None:
        """What was taken at an earlier sample has ended once all that was open then has."""
        while self._samples:
            taken_at, earlier = self._samples[0]
            if taken_at + GRACE_SECONDS > now or earlier.next_id > sample.oldest_open:
                break
            self.seq = max(self.seq, earlier.last_seq)
            self._samples.popleft()
        self._samples.append((now, sample))

    def forget(self) -> None:
        """The next answer may come from another database: a restored one has other numbers."""
        self._samples.clear()
        self.seq = 0


class Pace:
    """Decides where the next read begins in each bucket.

    At the first row, as long as that is quick. Else where `later_start` says; and, one bucket at a
    time, at the first row again, since an operator may have made an old row pending.
    """

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._again: Holding | None = None
        self._sample_at = 0.0
        self.slow = False

    def wants_sample(self, now: float) -> bool:
        """Whether it is time to look at the database's transactions."""
        if not self.slow or now < self._sample_at:
            return False
        self._sample_at = now + SAMPLE_SECONDS
        return True

    def set_starts(self, holdings: Collection[Holding], now: float, *, walls: bool) -> None:
        """Before a read. Without `walls`, which are parked lanes, there is nothing to pass over."""
        self.slow = self.slow and walls
        self._again = None
        if not self.slow:
            for holding in holdings:
                holding.start = 0
            return
        due = min(holdings, key=lambda each: each.rescan_at)
        if due.rescan_at <= now:
            due.start = 0
            self._again = due

    def read(self, holdings: Collection[Holding], took: float, now: float) -> None:
        """After a read that took so long."""
        wait = max(RESCAN_SECONDS, RESCAN_SHARE * took)
        if self._again is not None:
            self._again.rescan_at = now + wait
        if not self.slow and took > SLOW_SECONDS:
            self.slow = True
            for holding in holdings:
                holding.rescan_at = now + wait * self._dice()


def later_start(
    start: int, horizon: int, first_returned: int | None, first_moving: int | None
) -> int:
    """Where the next read of a bucket may begin, after one that began after `start` and returned
    `first_returned` first, while the lowest event under way was `first_moving`."""
    bounds = [horizon]
    if first_returned is not None:
        bounds.append(first_returned - 1)
    if first_moving is not None:
        bounds.append(first_moving - 1)
    return max(start, min(bounds))
