"""Which buckets are ours: take over, renew, claim our share, give up what is above it."""

import logging
from collections.abc import Collection
from uuid import UUID

import anyio

from outboxd.actors.relay.dispatch import Dispatch
from outboxd.actors.relay.persistence import Persistence
from outboxd.actors.relay.surroundings import Surroundings
from outboxd.core.errors import Unavailable
from outboxd.core.holdings import Holding, Holdings, lacking
from outboxd.core.settings import RelaySettings
from outboxd.pacing import pause
from outboxd.ports.outbox import Buckets

log = logging.getLogger(__name__)

LEAVING_SECONDS = 0.05
"""How often a bucket that is to be given up is looked at."""


class Ownership:
    """Keeps `holdings` true; the only one who changes it."""

    def __init__(
        self,
        buckets: Buckets,
        relay: UUID,
        predecessors: Collection[UUID],
        settings: RelaySettings,
        holdings: Holdings,
        dispatch: Dispatch,
        around: Surroundings,
    ) -> None:
        self._buckets = buckets
        self._relay = relay
        self._predecessors = tuple(predecessors)
        self._settings = settings
        self._holdings = holdings
        self._dispatch = dispatch
        self._observer, self._clock, self._dice = around
        self._persistence = Persistence("own", around)
        self.tried = anyio.Event()
        """Set once the database was asked for buckets, whatever it said."""
        self.retired = anyio.Event()
        """Set once, after `retire`, there is nothing left to give back."""
        self._retiring = False
        self._settled = False
        self._lacking = False
        self._hurry = anyio.Event()

    async def run(self) -> None:
        """Keep our share until told to retire, then give everything back."""
        while not self.retired.is_set():
            try:
                await self.keep()
                wait = self._renewal_seconds()
                self._persistence.worked()
            except Unavailable as error:
                wait = self._persistence.failed(error)
            self.tried.set()
            await self._wait(self._clock() + wait)

    async def keep(self) -> None:
        """One pass: renew, then come closer to our share, which is none when retiring. Raises
        Unavailable."""
        if self._nothing_to_give_back:
            await self._buckets.leave(self._relay)
            self.retired.set()
            return
        lease = self._settings.lease_seconds
        if self._predecessors and not self._retiring:
            # Its supervisor has reaped it: nothing that it began can still be under way from there.
            started = self._clock()
            taken = await self._buckets.take_over(self._relay, self._predecessors, lease)
            self._holdings.gained(taken, started + lease)
            self._predecessors = ()
        # The clock is read before the statement: the lease is then never shorter than we think.
        started = self._clock()
        renewal = await self._buckets.renew(self._relay, lease)
        lost = self._holdings.renewed(renewal.epochs, started + lease)
        if lost:
            self._observer.lost_buckets(len(lost))
            log.warning("buckets lost", extra={"buckets": [each.bucket for each in lost]})
            self._dispatch.forget(lost)
        await self._approach_share(renewal.live_relays)

    def retire(self) -> None:
        """Take nothing new, and give every bucket back as soon as it is settled."""
        self._retiring = True
        self.leave(list(self._holdings))
        self._hurry.set()

    def finish(self) -> None:
        """Nothing more will be settled: keep the buckets that are not, and set `retired` once the
        others are given back. Their next owner repeats what is unmarked in any case; until the
        lease ends it does not."""
        self._settled = True
        self._hurry.set()

    def leave(self, holdings: Collection[Holding]) -> None:
        """Take nothing new from these buckets, and give each up once it is settled."""
        for holding in holdings:
            holding.leaving = True
        self._dispatch.withdraw(set(holdings))

    async def release(self) -> None:
        """Give up the buckets that are to be given up and have nothing open. Raises Unavailable."""
        clean = [each for each in self._holdings if each.leaving and each.open == 0]
        if not clean:
            return
        await self._buckets.release(self._relay, {each.bucket: each.epoch for each in clean})
        for holding in clean:
            self._holdings.dropped(holding)
        self._dispatch.forget(clean)

    async def _approach_share(self, live_relays: int) -> None:
        surplus = self._holdings.to_leave(live_relays)
        self.leave(list(self._holdings) if self._retiring else surplus)
        await self.release()
        lease = self._settings.lease_seconds
        count = lacking(len(self._holdings), live_relays)
        self._lacking = count > 0 and not self._retiring
        if self._lacking:
            started = self._clock()
            claimed = await self._buckets.claim(self._relay, count, lease)
            self._holdings.gained(claimed, started + lease)
            if self._retiring:  # told so while the claim was under way
                self.leave(list(self._holdings))
            self._dispatch.look_again()
            self._lacking = len(claimed) < count

    @property
    def _nothing_to_give_back(self) -> bool:
        if not self._retiring:
            return False
        return all(each.open for each in self._holdings) if self._settled else not self._holdings

    def _renewal_seconds(self) -> float:
        """Sooner while we lack buckets: somebody may be giving them up for us."""
        seconds = self._settings.renew_seconds / (3 if self._lacking else 1)
        return seconds * (0.8 + 0.4 * self._dice())

    async def _wait(self, until: float) -> None:
        """Sleep; meanwhile give buckets up as they become free, for others wait for them."""
        while (left := until - self._clock()) > 0:
            if self._nothing_to_give_back:
                return
            leaving = any(holding.leaving for holding in self._holdings)
            await pause(self._hurry, min(left, LEAVING_SECONDS) if leaving else left)
            self._hurry = anyio.Event()
            try:
                await self.release()
            except Unavailable as error:
                await anyio.sleep(self._persistence.failed(error))
