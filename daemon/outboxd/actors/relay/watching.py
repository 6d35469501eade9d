"""Tells how things stand, every second for this relay, every ten for the outbox as a whole."""

import anyio

from outboxd.actors.relay.persistence import Persistence
from outboxd.actors.relay.surroundings import Memory, Surroundings
from outboxd.core.chains import Waiting
from outboxd.core.errors import Unavailable
from outboxd.pacing import pause
from outboxd.ports.outbox import Upkeep

MEASURE_SECONDS = 1.0
SURVEY_SECONDS = 10.0

WATCHER_BUCKET = 0
"""Whoever holds it looks after the outbox as a whole, so that one relay does."""


class Watching:
    """Asks on a connection of its own, and only when it is this relay's turn."""

    def __init__(self, upkeep: Upkeep, memory: Memory, around: Surroundings) -> None:
        self._upkeep = upkeep
        self._holdings, self._chains, self._ledger = memory
        self._observer, self._clock, _ = around
        self._persistence = Persistence("survey", around)
        self._survey_at = 0.0
        self._stopping = anyio.Event()

    def stop(self) -> None:
        """Ask nothing more; a survey that is under way ends by itself."""
        self._stopping.set()

    async def run(self) -> None:
        """Measure and survey until stopped."""
        while not self._stopping.is_set():
            self.measure()
            if self._clock() >= self._survey_at:
                self._survey_at = self._clock() + await self._survey_or_wait()
            await pause(self._stopping, MEASURE_SECONDS)

    def measure(self) -> None:
        """How this relay stands; asks nobody."""
        self._observer.measured(
            buckets=len(self._holdings),
            unsettled=self._ledger.unsettled,
            blocked=self._chains.parked_count({Waiting.BACKOFF, Waiting.MARK}),
            unrouted=self._chains.parked_count({Waiting.ROUTE}),
        )

    async def _survey_or_wait(self) -> float:
        """Say how the outbox stands, if it is ours to say; returns how long to wait at least."""
        if self._holdings.get(WATCHER_BUCKET) is None:
            self._observer.surveyed(None)
            return 0.0
        try:
            self._observer.surveyed(await self._upkeep.survey())
        except Unavailable as error:
            return self._persistence.failed(error)
        self._persistence.worked()
        return SURVEY_SECONDS
