"""What a pool tells the extender of its leases, and hears of them."""

from collections.abc import Iterable, Sequence
from itertools import count
from secrets import randbits

import anyio

from outboxd.actors.consumer.gates import Obstacle
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.channels.mailbox import Mailbox
from outboxd.channels.protocol import Address, Alone, Forget, Forgotten, Hold, Lease, Settled


def extension_possible(lease: Lease, now: float, call_timeout_seconds: float) -> bool:
    """Whether an extension may be on its way, or will be before a call made now has ended.

    The extender extends what has less than half of its visibility left.
    """
    first_extension = lease.received_at + lease.visibility_seconds / 2
    return now + call_timeout_seconds >= first_extension


class Leases:
    """Makes sure that no extension overtakes a backoff or a release.

    A delete needs no such care: extending a deleted message is harmless.
    """

    def __init__(
        self,
        pool: Pool,
        owner: Address,
        mailbox: Mailbox,
    ) -> None:
        self._pool = pool
        self._owner = owner
        self._mailbox = mailbox
        self._call_timeout = pool.timing.call_timeout_seconds
        # The extender keys by token alone, so two pools must not count from the same number.
        self._tokens = count(randbits(42) << 20)
        self._correlations = count(1)
        self._answers: dict[int, anyio.Event] = {}
        self._settled: list[int] = []
        self._some_settled = anyio.Event()
        self._orphaned = False
        self._down_since: float | None = -self._call_timeout

    def next_token(self) -> int:
        """A number that no other receive has."""
        return next(self._tokens)

    async def hold(self, items: Sequence[Item]) -> None:
        """Tell the extender of these messages; on return it outlives this process that we did."""
        if not items or self._orphaned:
            return
        for item in items:
            item.held = True
        await self.flush()
        await self._mailbox.send_written(Hold(self._owner, tuple(i.lease for i in items)))

    async def alone(self, item: Item) -> None:
        """Tell the supervisor that this message is handled now, and nothing beside it."""
        if item.held and not self._orphaned:
            await self._mailbox.send_written(Alone(self._owner, item.lease.token))

    async def forget(self, items: Iterable[Item]) -> None:
        """Return when no extension of these messages can reach SQS any more, or one call timeout
        later at the latest: the extender may be down."""
        held = [item for item in items if item.held and not item.lost]
        if not held or self._orphaned:
            return
        correlation = next(self._correlations)
        answer = self._answers[correlation] = anyio.Event()
        tokens = tuple(item.lease.token for item in held)
        try:
            await self._mailbox.send(Forget(self._owner, tokens, correlation))
            with anyio.move_on_after(self._patience(held)):
                await answer.wait()
        finally:
            del self._answers[correlation]

    def settled(self, items: Iterable[Item]) -> None:
        """Have the extender told, with the next Hold or soon, that there is nothing left to give
        back. Until then it may extend what is deleted, which is harmless."""
        self._settled += [item.lease.token for item in items if item.held]
        if self._settled:
            self._some_settled.set()

    async def tell_settled(self) -> None:
        """Tell of settled leases that no Hold took along, for ever."""
        while True:
            await self._some_settled.wait()
            await anyio.sleep(self._pool.timing.tell_settled_seconds)
            self._some_settled = anyio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Tell of all settled leases now."""
        tokens, self._settled = self._settled, []
        if not tokens or self._orphaned:
            return
        try:
            await self._mailbox.send(Settled(self._owner, tuple(tokens)))
        except BaseException:
            # A stop cancels the receive that this goes along with: the next word has it, then.
            self._settled = tokens + self._settled
            raise

    def heard(self, forgotten: Forgotten) -> None:
        """The extender has answered; an answer that nobody waits for any more comes too late."""
        answer = self._answers.get(forgotten.correlation)
        if answer is not None:
            answer.set()

    def extender_up(self) -> None:
        self._down_since = None
        self._pool.gates.clear(Obstacle.EXTENDER)

    def extender_down(self) -> None:
        self._down_since = self._pool.clock()
        self._pool.gates.close(Obstacle.EXTENDER)

    def orphan(self) -> None:
        """Nobody listens any more: settle without asking."""
        self._orphaned = True
        for answer in self._answers.values():
            answer.set()

    def _patience(self, items: Iterable[Item]) -> float:
        now = self._pool.clock()
        if not any(extension_possible(i.lease, now, self._call_timeout) for i in items):
            return 0.0
        if self._down_since is None:
            return self._call_timeout
        # What a dead extender had sent has arrived after one call timeout.
        return max(0.0, self._down_since + self._call_timeout - now)
