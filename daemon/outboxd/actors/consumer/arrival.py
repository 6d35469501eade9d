"""Takes received messages in: into hand, into the extender's care, and on to the workers."""

import logging
from collections import defaultdict
from collections.abc import Sequence

from outboxd.actors.consumer.distribution import Distributor
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.intake import Intake, own_seconds
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.settling import Settler
from outboxd.actors.consumer.solitude import Solitude
from outboxd.actors.consumer.suspecting import Suspecting
from outboxd.actors.consumer.verdicts import Verdicts
from outboxd.core.errors import Unavailable
from outboxd.core.messages import ReceivedMessage

log = logging.getLogger(__name__)


class Arrivals:
    """What SQS has handed out is in hand from here on, until it is settled."""

    def __init__(
        self,
        pool: Pool,
        leases: Leases,
        settler: Settler,
        suspecting: Suspecting,
        verdicts: Verdicts,
        distributor: Distributor,
        solitude: Solitude,
    ) -> None:
        self._pool = pool
        self._leases = leases
        self._settler = settler
        self._suspecting = suspecting
        self._verdicts = verdicts
        self._distributor = distributor
        self._solitude = solitude
        self._intake = Intake(pool, leases)

    async def take_in(self, messages: Sequence[ReceivedMessage], received_at: float) -> None:
        """Take these in; returns when more may be received, which suspects delay."""
        if self._stood_still(len(messages), received_at):
            return
        items = [self._intake.item(message, received_at) for message in messages]
        for item in items:
            self._pool.hand.take(item)
            self._pool.failed_heads.came(item.message.message_id)
        if self._pool.stopping.is_set():
            self._settler.release(items)
            return
        for item in items:
            self._intake.look_into(item)
        await self._look_for_suspects(items)
        await self._admit(items, received_at)

    async def _admit(self, items: Sequence[Item], received_at: float) -> None:
        # On a FIFO queue even a verdict waits for its turn.
        waiting = [item for item in items if item.verdict is None or self._pool.fifo]
        self._permit(waiting)
        await self._leases.hold(waiting)
        for item in items:
            if item.verdict is not None and not self._pool.fifo:
                self._settler.submit(item, item.verdict)
        if self._stood_still(len(waiting), received_at):
            for item in waiting:
                item.lost = True
        if self._pool.stopping.is_set():
            self._settler.release(waiting)
            return
        await self._solitude.run(self._distributor.hand_out(waiting))

    async def _look_for_suspects(self, items: Sequence[Item]) -> None:
        known = [item for item in items if item.verdict is None]
        try:
            await self._suspecting.look_up(known)
        except Unavailable as error:
            for item in known:
                if item.message.receive_count > 1:
                    item.verdict = self._verdicts.postpone(item, error)

    def _permit(self, items: Sequence[Item]) -> None:
        """Allow each to wait for those that run before it: of its group, or before a suspect."""
        before: defaultdict[str | None, float] = defaultdict(float)
        alone = any(item.suspicion is not None for item in items)
        neighbours = self._neighbours_seconds() if alone else 0.0
        for item in items:
            # Where some run alone any of them may have to wait for all the others.
            group = item.message.group_id if self._pool.fifo and not alone else None
            ordered = self._pool.fifo or alone
            self._intake.permit(item, neighbours + (before[group] if ordered else 0.0))
            before[group] += own_seconds(item)

    def _neighbours_seconds(self) -> float:
        """How long what is in hand may take at most, until something can run alone."""
        own = [own_seconds(item) for item in self._pool.hand.unended()]
        # On a FIFO queue they may all be of one group.
        return sum(own) if self._pool.fifo else max(own, default=0.0)

    def _stood_still(self, count: int, received_at: float) -> bool:
        """Whether this process slept so long that the messages are visible again, and maybe in
        other hands."""
        if self._pool.clock() < received_at + self._pool.settings.visibility_seconds:
            return False
        log.warning(
            "messages dropped; their leases ran out before they were looked at",
            extra={"queue": self._pool.name, "count": count},
        )
        return True
