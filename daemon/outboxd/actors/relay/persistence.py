"""How a loop bears a database that is away."""

import logging

from outboxd.actors.relay.surroundings import Surroundings
from outboxd.core.errors import Unavailable
from outboxd.core.retry import Backoff

log = logging.getLogger(__name__)

DATABASE_RETRIES = Backoff(first_seconds=0.1, factor=2.0, cap_seconds=2.0, jitter=0.5)
"""How soon a loop asks again; how often the process connects is the adapter's care."""


class Persistence:
    """Counts the failures in a row of one loop, and logs their beginning and their end only."""

    def __init__(self, doing: str, around: Surroundings) -> None:
        self._doing = doing
        self._observer = around.observer
        self._dice = around.dice
        self._failures = 0

    def failed(self, error: Unavailable) -> float:
        """The database could not be used; returns how many seconds to wait."""
        self._failures += 1
        self._observer.database_failed(self._doing)
        if self._failures == 1:
            log.warning(
                "database unavailable",
                extra={"doing": self._doing, "kind": error.kind, "error": str(error)},
            )
        return DATABASE_RETRIES.delay(self._failures, self._dice)

    def worked(self) -> None:
        """The database answered."""
        if self._failures:
            log.info(
                "database available again",
                extra={"doing": self._doing, "failures": self._failures},
            )
        self._failures = 0
