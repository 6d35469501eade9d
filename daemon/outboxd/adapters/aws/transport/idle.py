"""The connections of one client to one place that wait for their next request."""

from collections import deque

from outboxd.adapters.aws.transport.connection import Connection

IDLE_SECONDS = 15.0
"""AWS does not say when SQS closes an idle connection; S3 has been seen to do so after 20 seconds.
A request that crosses such an end is lost, and nobody can tell whether it was taken."""


class IdleConnections:
    """Keeps up to `most`, and hands out the one that was in use last, so that what is too many
    grows old. It never waits: who finds none opens one, as with the SDK.

    Without a lock, which a fork could copy while another thread holds it: a deque's methods are
    atomic.
    """

    def __init__(self, most: int, idle_seconds: float = IDLE_SECONDS) -> None:
        self._most = most
        self._idle_seconds = idle_seconds
        self._idle: deque[Connection] = deque()
        self._closed = False

    def take(self) -> Connection | None:
        """One that a request may be sent over, now the caller's alone."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.fresh(self._idle_seconds):
                return connection
            connection.close()

    def give_back(self, connection: Connection) -> None:
        """Only after a complete answer."""
        connection.rest()
        self._idle.append(connection)
        if self._closed:  # looked at behind the append: `close` has missed it
            self._shrink_to(0)
        elif len(self._idle) > self._most:
            self._shrink_to(self._most)

    def close(self) -> None:
        """Close what is idle now, and what is given back later."""
        self._closed = True
        self._shrink_to(0)

    def _shrink_to(self, most: int) -> None:
        while len(self._idle) > most:
            try:
                self._idle.popleft().close()
            except IndexError:  # another thread was faster
                return
