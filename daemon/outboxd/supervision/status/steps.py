"""What happened in each step of the last 15 minutes: counters as growth, gauges as they were."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from outboxd.supervision.observing import RestartReason
from outboxd.supervision.status import names
from outboxd.supervision.status.history import RECENT_STEPS, STEPS, History, total
from outboxd.supervision.status.readings import Readings, buckets_growth, growth, quantile

PLANNED = frozenset(
    {
        RestartReason.RECYCLE_AGE,
        RestartReason.RECYCLE_MESSAGES,
        RestartReason.RECYCLE_RSS,
        RestartReason.RELOAD,
        RestartReason.OPERATOR,
    }
)

WANTED_RETRIES = frozenset({"requested", "busy"})
"""A handler that asks for another time, and an event that a copy of it has in hand: no failures."""

MAX_OBSERVED = 1024
"""Histograms of which the last minute is remembered, at some 10 kB each."""

Key = tuple[str, ...]
"""What is remembered, and of what: ("handled", queue), ("handled", queue, handler)."""

Buckets = Mapping[float, float]


class Scope(Struct, frozen=True):
    """What the configuration of the moment has: only of that anything is remembered."""

    children: Sequence[str]
    handlers: Mapping[str, Sequence[str]]
    """By queue."""
    destinations: Sequence[str] | None
    """None without a relay."""


class Steps:
    """The history, and the questions about it that a page asks."""

    def __init__(self) -> None:
        self.history = History()
        self._durations: deque[float] = deque(maxlen=STEPS)
        self._observed: dict[Key, deque[Buckets | None]] = {}
        self._before = Readings()

    def took(self, scope: Scope, now: Readings, seconds: float) -> None:
        """A step of that many seconds ended with these readings."""
        before, self._before = self._before, now
        self._durations.append(seconds)
        taken: set[Key] = set()
        for key, value in _values(scope, now, before):
            self.history.add(key, value)
            taken.add(key)
        for key, buckets in _observations(scope, now, before):
            if key not in self._observed and len(self._observed) >= MAX_OBSERVED:
                continue
            self._observed.setdefault(key, deque(maxlen=RECENT_STEPS)).append(buckets)
            self.history.add(("p95", *key), quantile(0.95, buckets))
            taken.add(("p95", *key))
        self.history.keep(taken)
        for stale in [key for key in self._observed if ("p95", *key) not in taken]:
            del self._observed[stale]

    @property
    def before(self) -> Readings:
        """The readings at the end of the last step."""
        return self._before

    @property
    def observed_seconds(self) -> float:
        """How much of the last 15 minutes is known."""
        return sum(self._durations)

    def values(self, *key: str) -> tuple[float | None, ...]:
        """A gauge, or the growth of a counter, step by step."""
        return self.history.values(key)

    def rates(self, *key: str) -> tuple[float | None, ...]:
        """A counter's growth per second, step by step."""
        values = self.history.values(key)
        durations = list(self._durations)[-len(values) :] if values else []
        return tuple(
            None if value is None or seconds <= 0 else value / seconds
            for value, seconds in zip(values, durations, strict=True)
        )

    def rate(self, *key: str) -> float | None:
        """A counter's growth per second over about the last minute."""
        values = self.history.values(key)[-RECENT_STEPS:]
        grown = total(values)
        seconds = sum(list(self._durations)[-len(values) :]) if values else 0.0
        return None if grown is None or seconds <= 0 else grown / seconds

    def share(self, part: Key, whole: Key) -> float | None:
        """One counter's growth as a part of another's, over about the last minute."""
        some = total(self.history.values(part)[-RECENT_STEPS:])
        everything = total(self.history.values(whole)[-RECENT_STEPS:])
        return None if some is None or not everything else some / everything

    def total(self, *key: str) -> int | None:
        """A counter's growth over all that is remembered."""
        grown = total(self.history.values(key))
        return None if grown is None else round(grown)

    def quantile(self, share: float, *key: str) -> float | None:
        """Of what was observed within about the last minute."""
        merged: dict[float, float] = {}
        for buckets in self._observed.get(key, ()):
            for bound, count in (buckets or {}).items():
                merged[bound] = merged.get(bound, 0.0) + count
        return quantile(share, merged)


def failures_of(child: str, readings: Readings) -> int | None:
    """How often its processes have ended unplanned since the daemon began."""
    ends = [
        readings.sum(names.RESTARTS, child=child, reason=reason.value)
        for reason in RestartReason
        if reason not in PLANNED
    ]
    known = total(ends)
    return None if known is None else round(known)


def failures_of_handler(readings: Readings, **of_it: str) -> float | None:
    """Retries that nobody asked for, and dead letters."""
    retries = [
        value
        for labels, value in readings.items(names.RETRIES, **of_it)
        if dict(labels)["error_type"] not in WANTED_RETRIES
    ]
    return total([*retries, readings.sum(names.LETTERS, **of_it)])


def _values(scope: Scope, now: Readings, before: Readings) -> Iterator[tuple[Key, float | None]]:
    def grown(name: str, **where: str) -> float | None:
        return growth(now.sum(name, **where), before.sum(name, **where))

    for child in scope.children:
        failures = growth(failures_of(child, now), failures_of(child, before))
        yield ("failures", child), failures
    for queue, handlers in scope.handlers.items():
        yield ("visible", queue), now.sum(names.DEPTH, queue=queue, state="visible")
        yield ("received", queue), grown(names.RECEIVED, queue=queue)
        yield ("handled", queue), grown(names.PROCESSED, queue=queue, outcome="ok")
        yield ("retries", queue), grown(names.RETRIES, queue=queue)
        yield ("letters", queue), grown(names.LETTERS, queue=queue)
        yield ("receive errors", queue), grown(names.RECEIVES, queue=queue, result="error")
        for handler in handlers:
            of_it = {"queue": queue, "handler": handler}
            yield ("handled", queue, handler), grown(names.PROCESSED, **of_it, outcome="ok")
            failures = growth(
                failures_of_handler(now, **of_it), failures_of_handler(before, **of_it)
            )
            yield ("failed", queue, handler), failures
            yield ("ended", queue, handler), grown(names.PROCESSED, **of_it)
            yield ("retries", queue, handler), grown(names.RETRIES, **of_it)
            yield ("letters", queue, handler), grown(names.LETTERS, **of_it)
    if scope.destinations is not None:
        counted = bool(now.sum(names.COUNTED_AT))
        yield ("pending",), now.sum(names.PENDING) if counted else None
        yield ("oldest",), now.sum(names.OLDEST) if counted else None
        yield ("published",), grown(names.PUBLISHED)
        yield ("database failures",), grown(names.DATABASE_FAILURES)
        refused = [grown(names.REFUSED, error_type=kind) for kind in ("refused", "fault")]
        yield ("refused",), total(refused)
        for destination in scope.destinations:
            yield ("published", destination), grown(names.PUBLISHED, destination=destination)


def _observations(
    scope: Scope, now: Readings, before: Readings
) -> Iterator[tuple[Key, Buckets | None]]:
    def grown(name: str, **where: str) -> Buckets | None:
        return buckets_growth(now.buckets(name, **where), before.buckets(name, **where))

    for queue, handlers in scope.handlers.items():
        yield ("latency", queue), grown(names.LATENCY, queue=queue)
        for handler in handlers:
            yield (
                ("duration", queue, handler),
                grown(names.DURATION, queue=queue, handler=handler),
            )
    if scope.destinations is not None:
        yield ("publish latency",), grown(names.PUBLISH_LATENCY)
