"""When to leave a destination alone, and how to find out that it is back."""

from outboxd.core.retry import Backoff, Dice

PAUSES = Backoff(first_seconds=0.5, factor=2.0, cap_seconds=30.0, jitter=0.5)


class Breaker:
    """Up, paused after a failed call, or trying with one pack at a time.

    A new destination is tried with one pack too: nothing is known of it, and what has to be looked
    up before the first call should be looked up once. Calls belong to the episode in which they
    began, so that the many that were under way at a failure are one failure, and a late success
    among them does not end the pause.
    """

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._failures = 0
        self._proven = False
        self._paused_until: float | None = None
        self.episode = 0

    @property
    def paused_until(self) -> float | None:
        """The end of the pause; None when there is none."""
        return self._paused_until

    @property
    def down(self) -> bool:
        """It has failed, and no call has succeeded since."""
        return self._failures > 0

    def allowed(self, most: int) -> int:
        """How many packs may be on their way at once."""
        if self._paused_until is not None:
            return 0
        return most if self._proven else 1

    def failed(self, episode: int, now: float) -> bool:
        """A call as a whole failed; returns whether a pause begins."""
        if episode != self.episode:
            return False
        self.episode += 1
        self._failures += 1
        self._proven = False
        self._paused_until = now + PAUSES.delay(self._failures, self._dice)
        return True

    def succeeded(self, episode: int) -> bool:
        """A call succeeded; returns whether that ends an outage."""
        if episode != self.episode:
            return False
        was_down = self.down
        self._failures = 0
        self._proven = True
        return was_down

    def pause_over(self, now: float) -> bool:
        """Whether the pause ends now; from then on one pack may try."""
        if self._paused_until is None or now < self._paused_until:
            return False
        self._paused_until = None
        return True
