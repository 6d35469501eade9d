"""What a child's heartbeat says of its actor."""


class Progress:
    """Kept up to date by the actor, read by whoever reports it; times are boottime() seconds.

    `last_receive_at` is the end of the last receive (a consumer) or read (a relay) that was
    answered, `oldest_started_at` the start of the longest-running handler or send.
    """

    __slots__ = ("in_flight", "last_receive_at", "oldest_started_at")

    def __init__(self) -> None:
        self.in_flight = 0
        self.oldest_started_at: float | None = None
        self.last_receive_at: float | None = None
