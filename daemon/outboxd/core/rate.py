"""At most so many per second, without bursts."""

BURST_SECONDS = 0.1
"""How much of a pause can be made up for at once: enough for batches at high rates, and no more."""


class Rate:
    """A token bucket: `per_second` tokens flow in, and each message takes one."""

    def __init__(self, per_second: float, now: float) -> None:
        self._per_second = per_second
        self._most = max(1.0, per_second * BURST_SECONDS)
        self._tokens = self._most
        self._at = now

    def available(self, now: float) -> int:
        """How many messages may be taken now."""
        self._flow(now)
        return int(self._tokens)

    def take(self, count: int, now: float) -> None:
        """So many have been taken."""
        self._flow(now)
        self._tokens -= count

    def seconds_until_one(self, now: float) -> float:
        """How long to wait for the next one; 0 if there is one."""
        self._flow(now)
        return max(0.0, (1.0 - self._tokens) / self._per_second)

    def _flow(self, now: float) -> None:
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._per_second)
        self._at = now
