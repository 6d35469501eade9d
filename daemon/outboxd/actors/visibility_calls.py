"""Calls that change visibility timeouts: how many are on their way, and what came of them."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from outboxd.core.errors import Unavailable
from outboxd.ports.progress import Progress
from outboxd.ports.visibility import Failed, Timeout, TimeoutResult, Visibility

log = logging.getLogger(__name__)


class VisibilityCalls:
    """Bounds the calls of each queue, so that one that hangs takes nothing from the others."""

    def __init__(
        self,
        visibility: Visibility,
        per_queue: int,
        progress: Progress,
        clock: Callable[[], float],
    ) -> None:
        self._visibility = visibility
        self._per_queue = per_queue
        self._progress = progress
        self._clock = clock
        self._reserved: Counter[str] = Counter()
        self._started: list[float] = []
        self._troubled: set[str] = set()

    def has_room(self, queue: str) -> bool:
        """Whether one more call for the queue may be reserved."""
        return self._reserved[queue] < self._per_queue

    def reserve(self, queue: str) -> None:
        """Take a place that `make` gives back when its call has returned."""
        self._reserved[queue] += 1

    async def make(self, queue: str, timeouts: Sequence[Timeout]) -> Sequence[TimeoutResult]:
        """One result for each timeout; a call that failed as a whole is as many failures."""
        started = self._clock()
        self._started.append(started)
        self._note_progress()
        try:
            results = await self._visibility.change(queue, timeouts)
        except Unavailable as error:
            self._note_trouble(queue, str(error))
            return [Failed(error.kind.value)] * len(timeouts)
        finally:
            self._started.remove(started)
            self._reserved[queue] -= 1
            self._note_progress()
        self._progress.last_receive_at = self._clock()
        failures = [result.code for result in results if isinstance(result, Failed)]
        self._note_trouble(queue, failures[0] if failures else None)
        return results

    def _note_progress(self) -> None:
        self._progress.in_flight = len(self._started)
        self._progress.oldest_started_at = min(self._started, default=None)

    def _note_trouble(self, queue: str, error: str | None) -> None:
        """Log the first failure and the recovery; a failing queue fails several times a second."""
        if error is not None and queue not in self._troubled:
            self._troubled.add(queue)
            log.warning("visibility cannot be changed", extra={"queue": queue, "error": error})
        elif error is None and queue in self._troubled:
            self._troubled.discard(queue)
            log.info("visibility can be changed again", extra={"queue": queue})
