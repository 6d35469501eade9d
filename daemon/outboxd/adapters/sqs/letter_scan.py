"""Goes through a dead-letter queue from one end to the other, and leaves it as it was."""

from collections.abc import Callable

from outboxd.core.errors import Unavailable
from outboxd.core.messages import ReceivedMessage
from outboxd.core.redrive import Entry, read_letter
from outboxd.ports.queue import BATCH, Hiding, Queue

WAIT_SECONDS = 1
"""A long poll, however short, asks all of SQS's servers; a short poll finds a queue empty that is
not (SQS developer guide, "short and long polling")."""

_KNOWN_ONLY = 3
"""So many receives in a row that bring only what was seen before are the end of the queue."""


class LetterScan:
    """Goes through a queue once, though a letter may be delivered twice, and holds what it saw."""

    def __init__(self, queue: Queue, stopping: Callable[[], bool]) -> None:
        self._queue = queue
        self._stopping = stopping
        self._held: dict[str, str] = {}
        self._gone: set[str] = set()

    async def more(self, limit: int) -> list[Entry]:
        """The next letters, at most `limit`; none at the end, or when it is time to stop."""
        for _ in range(_KNOWN_ONLY):
            if self._stopping():
                return []
            messages = await self._queue.receive(limit, WAIT_SECONDS)
            fresh = [m for m in messages if not self._knows(m)]
            # The newest receipt is the one that SQS goes by.
            self._held.update({m.message_id: m.receipt_handle for m in messages})
            if fresh or not messages:
                return [read_letter(message) for message in fresh]
        return []

    def _knows(self, message: ReceivedMessage) -> bool:
        return message.message_id in self._held or message.message_id in self._gone

    def forget(self, entry: Entry) -> None:
        """It is deleted: nothing to give back."""
        self._gone.add(entry.message.message_id)
        self._held.pop(entry.message.message_id, None)

    async def release(self) -> str | None:
        """Make everything that is held visible at once; why not, if that failed.

        An entry that SQS refuses is one whose time was over: it is visible already.
        """
        handles = list(self._held.values())
        for start in range(0, len(handles), BATCH):
            hidings = [Hiding(handle, 0) for handle in handles[start : start + BATCH]]
            try:
                await self._queue.hide(hidings)
            except Unavailable as error:
                return str(error)
        return None
