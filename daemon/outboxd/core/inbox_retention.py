"""How long the inbox remembers: by the time in which queues were polled, not by the clock alone."""

from collections.abc import Iterable, Sequence

import msgspec

OUTAGE_SECONDS = 900.0
"""A queue that was not polled for longer was away; a deploy or a restart is not an outage."""

FORGOTTEN_SECONDS = 28 * 86_400.0
"""SQS keeps no message for longer than 14 days, and no dead letter for longer than 14 more: of a
queue that nobody has polled for so long there is nothing left that could come back."""

SHORTEST_SLICE_SECONDS = 1.0
LONGEST_SLICE_SECONDS = 400 * 86_400.0


class Gap(msgspec.Struct, frozen=True):
    """A time, in Unix seconds, in which a queue was not polled."""

    started_at: float
    ended_at: float


class Polled(msgspec.Struct, frozen=True):
    """When a queue was polled, and how long SQS keeps its messages and dead letters together, if
    that is known."""

    queue: str
    polled_at: float
    lasting_seconds: float | None
    gaps: Sequence[Gap] = ()


def kept_seconds(configured: float, polls: Iterable[Polled], *, shorter_allowed: bool) -> float:
    """How long marks are kept: never less than a message can still come back from SQS as the
    queues are now, whatever the configuration took them to be, unless that is allowed."""
    if shorter_allowed:
        return configured
    lasting = [poll.lasting_seconds for poll in polls if poll.lasting_seconds is not None]
    return max([configured, *lasting])


def purge_before(now: float, kept: float, polls: Sequence[Polled]) -> float:
    """Marks older than this moment may go: every queue has been polled for `kept` seconds since.

    A clock alone would take the marks away while a queue stands still, and its messages would then
    run a second time when it goes on (JasperFx/wolverine#1725). Without any poll there is nobody
    who could say, and the clock has to do.
    """
    moments = [
        _moment(now, kept, poll) for poll in polls if now - poll.polled_at < FORGOTTEN_SECONDS
    ]
    return min(moments, default=now - kept)


def _moment(now: float, kept: float, poll: Polled) -> float:
    gaps = list(poll.gaps)
    if now - poll.polled_at > OUTAGE_SECONDS:
        gaps.append(Gap(poll.polled_at, now))
    left, until = kept, now
    for gap in sorted(gaps, key=lambda each: each.ended_at, reverse=True):
        polled = max(0.0, until - gap.ended_at)
        if polled >= left:
            break
        left -= polled
        until = min(until, gap.started_at)
    return until - left


class Slices:
    """Walks through time in steps of about as many rows as one statement should delete.

    Rows are only indexed by ranges of blocks, roughly in order of time, so a step has to name both
    its ends, or it would look again at all that the steps before it have deleted.
    """

    def __init__(self, since: float, before: float) -> None:
        self._since = since
        self._before = before
        self._width = 86_400.0

    @property
    def finished(self) -> bool:
        """Whether nothing is left to look at."""
        return self._since >= self._before

    @property
    def current(self) -> tuple[float, float]:
        """The step to take: rows from the first moment on, and before the second."""
        return self._since, min(self._since + self._width, self._before)

    def took(self, deleted: int, limit: int) -> None:
        """The step has deleted so many rows; as many as the limit means that there may be more."""
        if deleted >= limit:
            self._width = max(SHORTEST_SLICE_SECONDS, self._width / 2)
            return
        self._since = self.current[1]
        if deleted < limit / 4:
            self._width = min(LONGEST_SLICE_SECONDS, self._width * 2)
