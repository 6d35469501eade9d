"""Receiving a failed head of a FIFO group without its followers.

A receive brings a group's head with up to nine followers, and while the head fails, each of its
retries would cost every follower a receive too, until the queue's own redrive policy buried them
for nothing. So when a failed head is about to be visible again, one message is asked for at a time.
"""

import math

NARROW_SECONDS = 10.0
"""A head that has not come by then is in other hands."""

MOST_HEADS = 1000


class FailedHeads:
    """When the failed heads of groups will be visible again; times are boottime() seconds."""

    def __init__(self) -> None:
        self._visible_at: dict[str, float] = {}

    def failed(self, message_id: str, visible_at: float) -> None:
        """The message stays at the head of its group, hidden until then."""
        if len(self._visible_at) >= MOST_HEADS:
            self._visible_at.pop(next(iter(self._visible_at)))
        self._visible_at[message_id] = visible_at

    def came(self, message_id: str) -> None:
        """The message has been received again."""
        self._visible_at.pop(message_id, None)

    def plan(self, now: float, limit: int, wait_seconds: int) -> tuple[int, int]:
        """How many messages to ask for, and how long to wait for them.

        A wide receive ends before the next head comes up; from then on they are narrow.
        """
        self._forget_before(now - NARROW_SECONDS)
        soonest = min(self._visible_at.values(), default=math.inf) - now
        if soonest >= wait_seconds + 1:
            return limit, wait_seconds
        whole_seconds = math.floor(soonest) - 1
        return (limit, whole_seconds) if whole_seconds >= 1 else (1, wait_seconds)

    def _forget_before(self, moment: float) -> None:
        # One at a time in the loop: there are few, and most of the time there is none.
        for message_id in [m for m, at in self._visible_at.items() if at < moment]:
            del self._visible_at[message_id]
