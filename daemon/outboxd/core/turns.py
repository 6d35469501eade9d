"""Which of our buckets the next read looks at: all, until one of them takes too long to read.

One statement reads many buckets, and the time that it may take is limited. A bucket that takes
longer, by a wall of blocked events say, must not keep the others unread: it is found by asking for
fewer and fewer at a time, and read alone and seldom until it can be read again.
"""

from collections.abc import Collection, Sequence

from outboxd.core.holdings import Holding

ALONE_SECONDS = 10.0
ALONE_SHARE = 20.0
"""How long a bucket rests at least that could not be read even alone, in seconds and in times of
what that took."""


class Turns:
    """Remembers what was cut off."""

    def __init__(self) -> None:
        self._most: int | None = None
        self._position = 0
        self._read = 0
        self._due: dict[Holding, float] = {}

    @property
    def partial(self) -> bool:
        """Whether some buckets still wait for their turn."""
        return self._most is not None

    def next(self, holdings: Collection[Holding], now: float) -> list[Holding]:
        """The buckets to read now, of those that are ours; none while all of them rest."""
        ours = set(holdings)
        self._due = {each: due for each, due in self._due.items() if each in ours}
        overdue = [each for each, due in self._due.items() if due <= now]
        if overdue:
            return [min(overdue, key=lambda each: self._due[each])]
        together = [each for each in holdings if each not in self._due]
        together.sort(key=lambda each: (each.bucket < self._position, each.bucket))
        return together[: self._most]

    def read(self, holdings: Sequence[Holding], ours: int) -> None:
        """These, which were to be read, have been, and so many are ours."""
        if self._due.pop(holdings[0], None) is not None or self._most is None:
            return
        self._position = holdings[-1].bucket + 1
        self._read += len(holdings)
        if self._read >= ours - len(self._due):
            self._most = None

    def cut_off(self, holdings: Sequence[Holding], took: float, now: float) -> None:
        """Reading these took longer than a statement may."""
        self._read = 0
        if len(holdings) == 1:
            self._due[holdings[0]] = now + max(ALONE_SECONDS, ALONE_SHARE * took)
        else:
            self._most = len(holdings) // 2
            self._position = holdings[0].bucket
