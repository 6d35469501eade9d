"""Runs suspects with nothing beside them, so that the next crash tells which one it was."""

import logging
from collections.abc import Sequence

from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.work import Work, Worker, messages_in

log = logging.getLogger(__name__)


class Solitude:
    """While it lasts nothing is received, since it is the receiver that waits for it."""

    def __init__(self, pool: Pool, worker: Worker) -> None:
        self._pool = pool
        self._worker = worker

    async def run(self, work: Sequence[Work]) -> None:
        """Do these one after another, once all other work in hand has ended."""
        if not work:
            return
        items = [item for each in work for item in messages_in(each)]
        while self._pool.hand.active > len(items) and not self._pool.stopping.is_set():
            await self._pool.change.wait()
        for item in items:
            log.info("runs alone", extra=self._facts(item))
        for each in work:
            await self._worker.do(each)

    def _facts(self, item: Item) -> dict[str, object]:
        return {"queue": self._pool.name, "message_id": item.message.message_id}
