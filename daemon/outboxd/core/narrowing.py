"""Receiving a failed head of a FIFO group without its followers.

A receive brings a group's head with up to nine followers, and while the head fails, each of its
retries would cost every follower a receive too, until the queue's own redrive policy buried them
for nothing. So after a head's first failure one message is asked for at a time when the head is
about to be visible again, and while it is in hand: a long poll that begins then may last until it
is visible the next time. On a busy queue, where such a receive brings something else, every second
one is wide: many failing heads must not slow down everybody.
"""

import math

NARROW_SECONDS = 10.0
"""A head that has not come by then is in other hands."""

MOST_HEADS = 1000


class FailedHeads:
    """When the failed heads of groups will be visible again; times are boottime() seconds."""

    def __init__(self) -> None:
        self._visible_at: dict[str, float] = {}
        self._in_hand: set[str] = set()
        self._narrow = False
        self._busy = False

    def failed(self, message_id: str, visible_at: float) -> None:
        """The message stays at the head of its group, hidden until then."""
        self.ended(message_id)
        if len(self._visible_at) >= MOST_HEADS:
            self._visible_at.pop(next(iter(self._visible_at)))
        self._visible_at[message_id] = visible_at

    def came(self, message_id: str) -> None:
        """The message has been received."""
        expected = self._visible_at.pop(message_id, None) is not None
        if expected:
            self._in_hand.add(message_id)
        self._busy = self._narrow and not expected

    def ended(self, message_id: str) -> None:
        """The message is no longer at the head of its group, or in hand no longer."""
        self._visible_at.pop(message_id, None)
        self._in_hand.discard(message_id)

    def plan(self, now: float, limit: int, wait_seconds: int) -> tuple[int, int]:
        """How many messages to ask for, and how long to wait for them.

        A wide receive ends before the next head comes up.
        """
        whole_seconds = self._seconds_of_width(now, wait_seconds)
        self._narrow = whole_seconds < min(1, wait_seconds) and not self._busy
        self._busy = False
        if self._narrow:
            return 1, wait_seconds
        return limit, max(0, min(wait_seconds, whole_seconds))

    def _seconds_of_width(self, now: float, wait_seconds: int) -> int:
        """How long a wide receive may wait; below 0 it had better not be wide."""
        if self._in_hand:
            return -1
        # Rebuilt rather than walked from one end: there are few, and most of the time none.
        self._visible_at = {
            m: at for m, at in self._visible_at.items() if at > now - NARROW_SECONDS
        }
        if not self._visible_at:
            return wait_seconds
        return math.floor(min(self._visible_at.values()) - now) - 1
