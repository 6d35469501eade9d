"""Tells how things stand, every second for this relay, every ten for the outbox as a whole."""

from collections.abc import Callable

import anyio

from outboxd.actors.relay.ledger import Ledger
from outboxd.actors.relay.persistence import Persistence
from outboxd.core.chains import Chains, Waiting
from outboxd.core.errors import Unavailable
from outboxd.core.holdings import Holdings
from outboxd.core.retry import Dice
from outboxd.ports.outbox import Upkeep
from outboxd.ports.relay_observer import RelayObserver

MEASURE_SECONDS = 1.0
SURVEY_SECONDS = 10.0

WATCHER_BUCKET = 0
"""Whoever holds it looks after the outbox as a whole, so that one relay does."""


class Watching:
    """Asks on a connection of its own, and only when it is this relay's turn."""

    def __init__(
        self,
        upkeep: Upkeep,
        holdings: Holdings,
        chains: Chains,
        ledger: Ledger,
        observer: RelayObserver,
        clock: Callable[[], float],
        dice: Dice,
    ) -> None:
        self._upkeep = upkeep
        self._holdings = holdings
        self._chains = chains
        self._ledger = ledger
        self._observer = observer
        self._clock = clock
        self._persistence = Persistence("survey", observer, dice)
        self._survey_at = 0.0

    async def run(self) -> None:
        """Measure and survey until cancelled."""
        while True:
            self.measure()
            if self._clock() >= self._survey_at:
                self._survey_at = self._clock() + await self._survey_or_wait()
            await anyio.sleep(MEASURE_SECONDS)

    def measure(self) -> None:
        """How this relay stands; asks nobody."""
        self._observer.measured(
            buckets=len(self._holdings),
            unsettled=self._ledger.unsettled,
            blocked=self._chains.parked_count({Waiting.BACKOFF, Waiting.MARK}),
            unrouted=self._chains.parked_count({Waiting.ROUTE}),
        )

    async def survey(self) -> None:
        """How the outbox stands, if it is ours to say. Raises Unavailable."""
        if self._holdings.get(WATCHER_BUCKET) is None:
            self._observer.surveyed(None)
            return
        self._observer.surveyed(await self._upkeep.survey())

    async def _survey_or_wait(self) -> float:
        try:
            await self.survey()
        except Unavailable as error:
            return self._persistence.failed(error)
        self._persistence.worked()
        return SURVEY_SECONDS
