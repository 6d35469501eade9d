"""Notices a call of a handler that neither ends nor can be ended."""

import anyio


class CallWatch:
    """Adds up how long the oldest call of a child has been seen to run; beyond `limit_seconds` the
    child is stuck.

    Added up from heartbeat to heartbeat rather than taken from the call's start: in a machine that
    slept for an hour every call began more than an hour ago, while its timeout stood still. A gap
    counts for at most `gap_seconds`, the silence that a healthy child may keep.
    """

    def __init__(self, limit_seconds: float, gap_seconds: float) -> None:
        """Both in seconds; a limit of `inf` is none."""
        self._limit = limit_seconds
        self._gap = gap_seconds
        self._call: float | None = None
        self._seen_at = 0.0
        self._seconds = 0.0
        self.stuck = anyio.Event()

    def seen(self, oldest_started_at: float | None, now: float) -> None:
        """A heartbeat told which call is the oldest one, by its start; None is none."""
        if oldest_started_at is None or oldest_started_at != self._call:
            self._seconds = 0.0
        else:
            self._seconds += min(now - self._seen_at, self._gap)
        self._call = oldest_started_at
        self._seen_at = now
        if self._seconds >= self._limit:
            self.stuck.set()
