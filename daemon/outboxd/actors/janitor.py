"""Deletes what has been kept long enough, in small steps, one relay for all."""

from collections.abc import Callable

import anyio

from outboxd.core.errors import Unavailable
from outboxd.core.retry import Backoff, Dice
from outboxd.pacing import pause
from outboxd.ports.outbox import Upkeep
from outboxd.ports.relay_observer import RelayObserver

ROWS_PER_STEP = 5_000
BETWEEN_STEPS_SECONDS = 0.1
BETWEEN_ROUNDS_SECONDS = 60.0
OFF_DUTY_SECONDS = 1.0
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
        self._stopping = anyio.Event()

    def stop(self) -> None:
        """Go off duty for good; a step that is under way ends by itself."""
        self._stopping.set()

    async def run(self) -> None:
        """Clean up again and again until stopped."""
        failures = 0
        while not self._stopping.is_set():
            try:
                if self._on_duty():
                    await self.clean()
                    wait = BETWEEN_ROUNDS_SECONDS
                else:
                    wait = OFF_DUTY_SECONDS
                failures = 0
            except Unavailable:
                failures += 1
                self._observer.database_failed("clean")
                wait = _RETRIES.delay(failures, self._dice)
            await pause(self._stopping, wait)

    async def clean(self) -> None:
        """One round: every published row that is older than the retention, as long as this relay is
        on duty. Raises Unavailable."""
        await self._upkeep.forget_relays(RELAYS_SILENT_SECONDS)
        after = 0
        while self._working():
            step = await self._upkeep.purge(self._retention_seconds, after, ROWS_PER_STEP)
            self._observer.purged(step.deleted)
            if step.finished:
                return
            after = step.last_seq
            await pause(self._stopping, BETWEEN_STEPS_SECONDS)

    def _working(self) -> bool:
        return self._on_duty() and not self._stopping.is_set()
