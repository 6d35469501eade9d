"""Runs suspects with nothing beside them, so that the next crash tells which one it was."""

from collections import deque
from collections.abc import Sequence

from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.work import Work, Worker, messages_in


class Solitude:
    """While it lasts nothing is received, since it is the receiver that waits for it."""

    def __init__(self, pool: Pool, worker: Worker) -> None:
        self._pool = pool
        self._worker = worker
        self._waiting: deque[Work] = deque()

    async def run(self, work: Sequence[Work]) -> None:
        """Do these one after another, once all other work in hand has ended."""
        if not work:
            return
        self._waiting.extend(work)
        with self._pool.hand.all_slots():
            await self._pool.change.until(self._may_begin)
            while self._waiting:
                await self._run(self._waiting.popleft())

    async def _run(self, work: Work) -> None:
        for item in messages_in(work):
            item.alone = True
        await self._worker.do(work)

    def take_waiting(self) -> list[Item]:
        """Everything that has not begun, which it then will not."""
        items = [item for each in self._waiting for item in messages_in(each)]
        self._waiting.clear()
        return items

    def _may_begin(self) -> bool:
        """Whether nothing else is in hand, or this is not to begin at all any more."""
        waiting = sum(len(messages_in(each)) for each in self._waiting)
        return not waiting or self._pool.hand.active <= waiting or self._pool.stopping.is_set()
