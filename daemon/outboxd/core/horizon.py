"""Up to which row of the outbox everything is committed, or will never be."""

from collections import deque

import msgspec

GRACE_SECONDS = 5.0
"""A transaction takes the number of a row a moment before it has an id of its own, by which it
would be known to be open; this is far longer."""

SAMPLE_SECONDS = 1.0
SAMPLES = 128
"""How many are remembered, so far apart, while some transaction does not end."""


class Sample(msgspec.Struct, frozen=True):
    """The database at one moment: transactions below `oldest_open` have ended, none has an id of
    `next_id` or above yet, and `last_seq` has been taken."""

    oldest_open: int
    next_id: int
    last_seq: int


class Horizon:
    """Up to which row nothing can be committed any more."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Sample]] = deque(maxlen=SAMPLES)
        self._sample_at = 0.0
        self.seq = 0

    def wants_sample(self, now: float) -> bool:
        """Whether it is time to look at the database's transactions."""
        return now >= self._sample_at

    def sampled(self, sample: Sample, now: float) -> None:
        """What was taken at an earlier sample has ended once all that was open then has."""
        while self._samples:
            taken_at, earlier = self._samples[0]
            if taken_at + GRACE_SECONDS > now or earlier.next_id > sample.oldest_open:
                break
            self.seq = max(self.seq, earlier.last_seq)
            self._samples.popleft()
        self._samples.append((now, sample))
        self._sample_at = now + SAMPLE_SECONDS

    def forget(self) -> None:
        """The next answer may come from another database: a restored one has other numbers."""
        self._samples.clear()
        self.seq = 0
