"""Goes through a dead-letter queue from one end to the other, and leaves it as it was."""

from collections.abc import Callable, Sequence
from itertools import count
from math import inf
from typing import NamedTuple

from outboxd.adapters.sqs.group_depths import GroupDepths, group_of
from outboxd.core.clock import boottime
from outboxd.core.errors import Unavailable
from outboxd.core.messages import ReceivedMessage
from outboxd.core.redrive import Entry, read_letter
from outboxd.ports.queue import BATCH, Hiding, Queue

WAIT_SECONDS = 1
"""A long poll, however short, asks all of SQS's servers; a short poll finds a queue empty that is
not (SQS developer guide, "short and long polling")."""

_KNOWN_ONLY = 3
"""So many receives in a row, at least, that bring only what was seen before are the end of the
queue. In long work what was seen first is visible again before the rest was seen; so they are the
end only once one of them brings a letter again: then they have been round all that is visible."""


class _Held(NamedTuple):
    """The newest receipt of a letter, and when it came."""

    receipt_handle: str
    at: float


class LetterScan:
    """Goes through a queue once, though a letter may be delivered twice, and holds what it saw.

    What is held locks its message group on a FIFO queue: nothing behind it is delivered. So after
    the first pass groups that may go on are released and received again from their heads, which
    brings up to BATCH letters of each. There is no way to see more of a group than that.
    """

    def __init__(
        self,
        queue: Queue,
        stopping: Callable[[], bool],
        *,
        fifo: bool,
        hidden_seconds: float = inf,
        clock: Callable[[], float] = boottime,
    ) -> None:
        """`hidden_seconds` is how long a receive hides letters."""
        self._queue = queue
        self._stopping = stopping
        self._hidden_seconds = hidden_seconds
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._gone: set[str] = set()
        self._depths = GroupDepths() if fifo else None
        self._passed_once = False

    @property
    def cut_groups(self) -> list[str]:
        """The message groups of which there may be letters that cannot be seen."""
        return [] if self._depths is None else self._depths.cut

    async def more(self, limit: int) -> list[Entry]:
        """The next letters, at most `limit`, or BATCH if they were behind others of their groups;
        none at the end, or when it is time to stop."""
        if self._passed_once and (behind := await self._behind_the_seen()):
            return behind
        round_of: set[str] = set()
        for number in count(1):
            if self._stopping():
                return []
            messages, fresh = await self._receive(limit)
            if fresh:
                return fresh
            ids = {message.message_id for message in messages}
            if not messages or (number >= _KNOWN_ONLY and not round_of.isdisjoint(ids)):
                break
            round_of |= ids
        self._passed_once = True
        return await self._behind_the_seen()

    async def _behind_the_seen(self) -> list[Entry]:
        while self._depths is not None and not self._stopping():
            probed = self._depths.next_probe()
            if not probed:
                break
            await self._release([self._held[message_id] for message_id in probed])
            _, fresh = await self._receive(BATCH)
            if fresh:
                return fresh
        return []

    async def _receive(self, limit: int) -> tuple[Sequence[ReceivedMessage], list[Entry]]:
        """What came, and of it what had not come before."""
        messages = await self._queue.receive(limit, WAIT_SECONDS)
        fresh = [message for message in messages if not self._knows(message)]
        # The newest receipt is the one that SQS goes by.
        now = self._clock()
        self._held.update({m.message_id: _Held(m.receipt_handle, now) for m in messages})
        if self._depths is not None:
            self._depths.received(messages, full=len(messages) >= limit, news=bool(fresh))
        return messages, [read_letter(message) for message in fresh]

    def _knows(self, message: ReceivedMessage) -> bool:
        return message.message_id in self._held or message.message_id in self._gone

    def forget(self, entry: Entry) -> None:
        """It is deleted: nothing to give back."""
        self._gone.add(entry.message.message_id)
        self._held.pop(entry.message.message_id, None)
        if self._depths is not None:
            self._depths.gone(entry.message)

    def leave(self, entry: Entry) -> None:
        """It stays where it is, and so does, on a FIFO queue, the rest of its message group."""
        if self._depths is not None:
            self._depths.leave(group_of(entry.message))

    def has_left(self, entry: Entry) -> bool:
        """Whether an earlier letter of its message group stays where it is."""
        return self._depths is not None and self._depths.has_left(group_of(entry.message))

    async def release(self) -> str | None:
        """Make everything that is held visible at once; why not, if that failed.

        An entry that SQS refuses is one whose time was over: it is visible already.
        """
        try:
            await self._release(list(self._held.values()))
        except Unavailable as error:
            return str(error)
        return None

    async def _release(self, held: Sequence[_Held]) -> None:
        """Only what is still hidden: of a hundred thousand that were seen that is a part, and one
        that is visible again may be in other hands by now, which is their time and not ours."""
        since = self._clock() - self._hidden_seconds
        handles = [each.receipt_handle for each in held if each.at > since]
        for start in range(0, len(handles), BATCH):
            await self._queue.hide([Hiding(handle, 0) for handle in handles[start : start + BATCH]])
