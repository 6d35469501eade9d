"""How long to wait before the next try."""

import random
from collections.abc import Callable

import msgspec

Dice = Callable[[], float]


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential delays with jitter: `first_seconds`, times `factor` each time, up to
    `cap_seconds`; or the listed `delays`, of which the last one stays.

    `jitter` is the share of a delay that is left to chance: 0 none, 1 full. Full jitter spreads
    retries best (AWS Architecture Blog, "Exponential Backoff And Jitter"); consumers keep half, so
    that a delay also stays a delay.
    """

    first_seconds: float = 2.0
    factor: float = 2.0
    cap_seconds: float = 300.0
    jitter: float = 0.5
    delays: tuple[float, ...] = ()

    def delay(self, attempt: int, dice: Dice = random.random) -> float:
        """Seconds to wait after the failed try number `attempt`, counted from 1."""
        return self._longest(max(attempt, 1) - 1) * (1.0 - self.jitter * dice())

    def _longest(self, failed_before: int) -> float:
        if self.delays:
            return self.delays[min(failed_before, len(self.delays) - 1)]
        # The exponent is bounded: 2.0 ** 2000 overflows, and a destination may be away for days.
        return min(self.first_seconds * self.factor ** min(failed_before, 64), self.cap_seconds)
