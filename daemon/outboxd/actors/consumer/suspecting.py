"""What a pool does about messages that may have crashed a process before."""

import logging
from collections.abc import Mapping, Sequence

import anyio

from outboxd.actors.consumer.database_watch import DatabaseWatch
from outboxd.actors.consumer.gates import Obstacle
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.channels.mailbox import Mailbox
from outboxd.channels.protocol import Suspect, SuspectsRecorded
from outboxd.core.errors import Unavailable
from outboxd.ports.suspects import Suspects, Suspicion

log = logging.getLogger(__name__)


class Suspecting:
    """Writes down what the predecessor left, before the first poll, and asks about redeliveries."""

    def __init__(
        self,
        pool: Pool,
        suspects: Suspects,
        inherited: Sequence[Suspect],
        watch: DatabaseWatch,
        mailbox: Mailbox,
    ) -> None:
        self._pool = pool
        self._suspects = suspects
        self._inherited = tuple(inherited)
        self._watch = watch
        self._mailbox = mailbox
        self._failures = 0

    async def begin(self) -> None:
        """Try to write the inherited suspects down; receiving waits until that is done.

        A dead pool's messages are given back when its successor says that this is done, and another
        pool that gets one then has to know of it already.
        """
        if self._inherited:
            self._pool.gates.close(Obstacle.SUSPECTS)
            await self._record()

    async def run(self) -> None:
        """Go on trying through an outage."""
        while self._inherited:
            self._failures += 1
            backoff = self._pool.timing.database_backoff
            await anyio.sleep(backoff.delay(self._failures, self._pool.dice))
            await self._record()

    async def look_up(self, items: Sequence[Item]) -> None:
        """Note on the items what stands against them. Raises Unavailable.

        What comes for the first time has been in nobody's hands.
        """
        again = [item for item in items if item.message.receive_count > 1]
        if again:
            known = await self._suspects.look_up([item.message for item in again])
            _note(again, known)

    async def clear(self, item: Item) -> None:
        """It ran alone, and the process is still there."""
        try:
            await self._suspects.cleared([item.message.message_id])
        except Unavailable as error:
            # It stays a suspect, which costs it another run alone.
            log.warning("suspect not cleared", extra={**item.facts(), "error": str(error)})

    async def _record(self) -> None:
        try:
            await self._suspects.record(self._inherited)
        except Unavailable as error:
            self._watch.lost(str(error))
            return
        log.warning(
            "a process died with these messages in hand; each runs alone next time",
            extra={
                "queue": self._pool.name,
                "message_ids": [suspect.message_id for suspect in self._inherited],
                "reason": self._inherited[-1].reason,
            },
        )
        self._inherited = ()
        # Before anything can be received: what is held from now on, the supervisor hears later.
        await self._mailbox.send(SuspectsRecorded())
        self._pool.gates.clear(Obstacle.SUSPECTS)


def _note(items: Sequence[Item], known: Mapping[str, Suspicion]) -> None:
    for item in items:
        item.suspicion = known.get(item.message.message_id)
