"""The packs that are with a destination right now."""

from collections.abc import Callable

import anyio

from outboxd.ports.progress import Progress


class Flights:
    """Counts what is in flight, and says when nothing is."""

    def __init__(self, progress: Progress, clock: Callable[[], float]) -> None:
        self._progress = progress
        self._clock = clock
        self._started: dict[int, float] = {}
        self._numbers = 0
        self._landed = anyio.Event()

    @property
    def entries(self) -> int:
        """Events in flight, once for each destination."""
        return self._progress.in_flight

    def took_off(self, entries: int) -> int:
        """A pack leaves; returns the number to say with `landed`."""
        self._numbers += 1
        self._started[self._numbers] = self._clock()
        self._progress.in_flight += entries
        self._tell_oldest()
        return self._numbers

    def landed(self, number: int, entries: int) -> None:
        """The fate of that pack is known."""
        del self._started[number]
        self._progress.in_flight -= entries
        self._tell_oldest()
        if not self._started:
            self._landed.set()
            self._landed = anyio.Event()

    async def all_landed(self) -> None:
        """Wait until nothing is in flight."""
        while self._started:
            await self._landed.wait()

    def _tell_oldest(self) -> None:
        # Packs are kept in the order of their starts.
        self._progress.oldest_started_at = next(iter(self._started.values()), None)
