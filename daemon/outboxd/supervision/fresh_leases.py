"""Leases that are so new that the extender need not know of them yet."""

from collections.abc import Callable, Iterator

import anyio

from outboxd.channels.protocol import Address, Hold, Lease, Settled
from outboxd.core.clock import boottime

PATIENCE_SECONDS = 0.25
"""How long the extender is not told of a lease. The shortest visibility timeout that a queue may
have is two seconds, and nothing is extended before half of it is over."""


class FreshLeases:
    """Most messages are handled and deleted before anybody would have extended them, and the
    extender that never hears of those is spared two frames and their bookkeeping for each.

    The ledger knows of them at once: that an owner died, or the extender, costs nobody a lease.
    """

    def __init__(self, clock: Callable[[], float] = boottime) -> None:
        self._clock = clock
        self._leases: dict[Address, dict[int, Lease]] = {}
        self._some = anyio.Event()

    def took(self, hold: Hold) -> bool:
        """Whether the extender need not be told of these now; then they are kept."""
        soon = self._clock() + 2 * PATIENCE_SECONDS
        if any(each.received_at + each.visibility_seconds / 2 <= soon for each in hold.leases):
            return False
        self._leases.setdefault(hold.owner, {}).update((each.token, each) for each in hold.leases)
        self._some.set()
        return True

    def settled(self, message: Settled) -> Settled | None:
        """What the extender has to be told of this: nothing of leases that it never heard of."""
        kept = self._leases.get(message.owner)
        if not kept:
            return message
        known = tuple(token for token in message.tokens if kept.pop(token, None) is None)
        if not kept:
            del self._leases[message.owner]
        return Settled(message.owner, known) if known else None

    def take(self, owner: Address) -> Hold | None:
        """An owner's, who is about to say more of them, or to say nothing any more."""
        kept = self._leases.pop(owner, None)
        return Hold(owner, tuple(kept.values())) if kept else None

    def clear(self) -> None:
        """A new extender is told everything."""
        self._leases.clear()

    async def grown(self) -> Iterator[Hold]:
        """Those that are not settled soon; returns when there are some."""
        if not self._leases:
            self._some = anyio.Event()
            await self._some.wait()
        await anyio.sleep(PATIENCE_SECONDS)
        owners = list(self._leases)
        return (hold for owner in owners if (hold := self.take(owner)) is not None)
