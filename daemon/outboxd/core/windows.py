"""Which rows of a bucket a read looks at, when looking at all of them takes too long.

The events of a blocked aggregate are a wall: each read has to pass over all of them. Beyond the
wall is not simply where the last read ended: a transaction that took a lower number and commits
later would be found too late, after its successors. So a read may begin after a row only if

- every row up to it is committed or will never be, which `core.horizon` finds out, and
- those of them that are pending belong to lanes that are parked (`core.chains`).

Nor may one read have to pass over the whole wall: the time that a statement may take is limited,
and what cannot be read within it would never be published. Up to the horizon, where nothing can
appear any more, a bucket is therefore read in windows.
"""

from collections.abc import Collection

import msgspec

from outboxd.core.holdings import Holding
from outboxd.core.retry import Dice

LAST_SEQ = 2**63 - 1

SLOW_SECONDS = 0.1
"""A read that takes less looks at every row: then whatever becomes pending, be it by an operator,
is found at once."""

RESCAN_SECONDS = 10.0
RESCAN_SHARE = 20.0
"""How long reads of a bucket may begin later until one begins at its first row again, in seconds
and in times of what that took."""

FIRST_WINDOW = 100_000
SMALLEST_WINDOW = 1_000
"""Numbers of rows. Passing over 100,000 rows of one bucket took 0.1 to 0.2 s."""

MEMORY_OF_A_CUT_SECONDS = 600.0
"""How long after a read that was cut off reads do not look at every row, even if nothing is parked:
dead rows that vacuum may not remove yet have to be passed over as well."""


class Window(msgspec.Struct, frozen=True):
    """A read looks at the rows after one, up to another."""

    after: int = 0
    up_to: int = LAST_SEQ

    @property
    def ends(self) -> bool:
        """Whether there may be rows beyond it."""
        return self.up_to < LAST_SEQ


EVERYTHING = Window()


class Windows:
    """Chooses what the next read looks at in each bucket.

    Everything, as long as that is quick. Else what `later_start` leaves; and, one bucket at a time,
    everything again, since an operator may have made an old row pending.
    """

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._size = FIRST_WINDOW
        self._cut_off_at = float("-inf")
        self._again: Holding | None = None
        self.slow = False

    def open(
        self, holdings: Collection[Holding], horizon: int, now: float, *, walls: bool
    ) -> dict[int, Window]:
        """Before a read. Without `walls`, which are parked lanes, there is nothing to pass over."""
        walls = walls or now < self._cut_off_at + MEMORY_OF_A_CUT_SECONDS
        self.slow = self.slow and walls
        self._again = None
        if not self.slow:
            for holding in holdings:
                holding.start = 0
            return {holding.bucket: EVERYTHING for holding in holdings}
        due = min(holdings, key=lambda each: each.rescan_at)
        if due.rescan_at <= now:
            due.start = 0
            self._again = due
        return {each.bucket: self._window(each.start, horizon) for each in holdings}

    def read(self, holdings: Collection[Holding], horizon: int, took: float, now: float) -> None:
        """After a read that took so long."""
        # All windows of a bucket together may take so much longer.
        windows = max(1.0, horizon / self._size) if self.slow else 1.0
        wait = max(RESCAN_SECONDS, RESCAN_SHARE * took * windows)
        if self._again is not None:
            self._again.rescan_at = now + wait
        if took > 2 * SLOW_SECONDS:
            self._size = max(SMALLEST_WINDOW, self._size // 2)
        elif took < SLOW_SECONDS:
            self._size = min(LAST_SEQ, self._size * 2)
        if not self.slow and took > SLOW_SECONDS:
            self._became_slow(holdings, wait, now)

    def cut_off(self, holdings: Collection[Holding], took: float, now: float) -> None:
        """After a read that was not let end."""
        self._cut_off_at = now
        self._size = max(SMALLEST_WINDOW, self._size // 4)
        if not self.slow:
            self._became_slow(holdings, max(RESCAN_SECONDS, RESCAN_SHARE * took), now)

    def _became_slow(self, holdings: Collection[Holding], wait: float, now: float) -> None:
        self.slow = True
        self._size = min(self._size, FIRST_WINDOW)
        for holding in holdings:
            holding.rescan_at = now + wait * self._dice()

    def _window(self, start: int, horizon: int) -> Window:
        end = start + self._size
        return Window(start, end if end < horizon else LAST_SEQ)


def later_start(
    window: Window, horizon: int, first_returned: int | None, first_moving: int | None
) -> int:
    """After which row the next read of a bucket may begin, after one that looked at `window` and
    returned `first_returned` first, while the lowest event under way was `first_moving`."""
    bounds = [horizon, window.up_to]
    if first_returned is not None:
        bounds.append(first_returned - 1)
    if first_moving is not None:
        bounds.append(first_moving - 1)
    return max(window.after, min(bounds))
