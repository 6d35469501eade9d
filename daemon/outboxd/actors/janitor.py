"""Deletes what has been published and kept long enough, in small steps, one relay for all."""

from collections.abc import Callable

import anyio

from outboxd.core.errors import Unavailable
from outboxd.core.retry import Backoff, Dice
from outboxd.ports.outbox import Upkeep
from outboxd.ports.relay_observer import RelayObserver

ROWS_PER_STEP = 5_000
BETWEEN_STEPS_SECONDS = 0.1
BETWEEN_ROUNDS_SECONDS = 60.0
RELAYS_SILENT_SECONDS = 3_600.0

SECONDS_PER_DAY = 86_400.0

_RETRIES = Backoff(first_seconds=1.0, cap_seconds=60.0)


class Janitor:
    """Every step is a transaction of its own that publishing does not notice."""

    def __init__(
        self,
        upkeep: Upkeep,
        retention_days: float,
        on_duty: Callable[[], bool],
        observer: RelayObserver,
        dice: Dice,
    ) -> None:
        """`on_duty` says whether this relay is the one that cleans up now."""
        self._upkeep = upkeep
        self._retention_seconds = retention_days * SECONDS_PER_DAY
        self._on_duty = on_duty
        self._observer = observer
        self._dice = dice

    async def run(self) -> None:
        """Clean up again and again until cancelled."""
        failures = 0
        while True:
            try:
                await self.clean()
                failures = 0
                wait = BETWEEN_ROUNDS_SECONDS
            except Unavailable:
                failures += 1
                self._observer.database_failed("clean")
                wait = _RETRIES.delay(failures, self._dice)
            await anyio.sleep(wait)

    async def clean(self) -> None:
        """One round: every published row that is older than the retention. Raises Unavailable."""
        if not self._on_duty():
            return
        await self._upkeep.forget_relays(RELAYS_SILENT_SECONDS)
        after = 0
        while self._on_duty():
            step = await self._upkeep.purge(self._retention_seconds, after, ROWS_PER_STEP)
            self._observer.purged(step.deleted)
            if step.finished:
                return
            after = step.last_seq
            await anyio.sleep(BETWEEN_STEPS_SECONDS)
