"""What a child's heartbeat and its metrics say of its actor."""

from collections.abc import Callable, Collection


class Progress:
    """Kept up to date by the actor, read by whoever reports it; times are boottime() seconds.

    `last_receive_at` is the end of the last receive (a consumer) or read (a relay) that was
    answered, `oldest_started_at` the start of the longest-running handler or send.
    `handled` counts the messages whose handlers have all ended.
    `obstacles` tells what keeps a consumer from receiving now.
    """

    __slots__ = ("handled", "in_flight", "last_receive_at", "obstacles", "oldest_started_at")

    def __init__(self) -> None:
        self.handled = 0
        self.in_flight = 0
        self.oldest_started_at: float | None = None
        self.last_receive_at: float | None = None
        self.obstacles: Callable[[], Collection[str]] = tuple
