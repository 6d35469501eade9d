"""How long to wait before the next try."""

import random
from collections.abc import Callable

import msgspec

Dice = Callable[[], float]


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential delays with jitter: `first_seconds`, doubled each time, up to `cap_seconds`.

    `jitter` is the share of a delay that is left to chance: 0 none, 1 full. Full jitter spreads
    retries best (AWS Architecture Blog, "Exponential Backoff And Jitter"); consumers keep half, so
    that a delay also stays a delay.
    """

    first_seconds: float = 2.0
    factor: float = 2.0
    cap_seconds: float = 300.0
    jitter: float = 0.5

    def delay(self, attempt: int, dice: Dice = random.random) -> float:
        """Seconds to wait after the failed try number `attempt`, counted from 1."""
        # The exponent is bounded: 2.0 ** 2000 overflows, and a destination may be away for days.
        grown = self.first_seconds * self.factor ** min(max(attempt, 1) - 1, 64)
        longest = min(grown, self.cap_seconds)
        return longest * (1.0 - self.jitter * dice())
