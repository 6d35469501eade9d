"""The relay's metrics."""

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from outboxd.core.errors import OutageKind
from outboxd.ports.outbox import Survey
from outboxd.ports.relay_observer import FailureKind, Stage

OUTBOX = "default"
"""The only outbox so far; the label is there so that a second one breaks no dashboard."""

AGE_BOUNDS = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
    *(300.0, 900.0, 1800.0, 3600.0),
)
DURATION_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROW_BOUNDS = (1, 2, 5, 10, 25, 50, 100)
LOOPS = ("read", "own", "mark", "survey", "clean", "listen", "sleep")


class RelayMetrics:
    """Counts what the relay tells; implements RelayObserver. Every series exists from the start.

    Gauges about the table are the same for all relays, and 0 in those that do not ask: aggregate
    them with `max by (outbox)`.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        destinations: Iterable[str],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._wall_clock = wall_clock
        self._declare_publishing()
        self._declare_faults()
        self._declare_levels()
        self._published_to: dict[str, Counter] = {}
        for destination in destinations:
            self._published_to[destination] = self._published.labels(OUTBOX, destination)
            self._uncertain.labels(OUTBOX, destination)
            self._up.labels(OUTBOX, destination).set(1)
            for failure in FailureKind:
                self._failures.labels(OUTBOX, destination, failure.value)
            for outage in OutageKind:
                self._outages.labels(OUTBOX, destination, outage.value)

    def took(self, stage: Stage, seconds: float) -> None:
        self._durations[stage].observe(seconds)

    def accepted(self, destination: str, ages_seconds: Sequence[float]) -> None:
        self._published_to[destination].inc(len(ages_seconds))
        self._rows.observe(len(ages_seconds))
        self._ages.observe(ages_seconds)
        self._last_publish.set(self._wall_clock())

    def failed(self, destination: str, kind: FailureKind, events: int) -> None:
        self._failures.labels(OUTBOX, destination, kind.value).inc(events)

    def paused(self, destination: str, kind: OutageKind) -> None:
        self._outages.labels(OUTBOX, destination, kind.value).inc()
        self._up.labels(OUTBOX, destination).set(0)

    def recovered(self, destination: str) -> None:
        self._up.labels(OUTBOX, destination).set(1)

    def uncertain(self, destination: str, events: int) -> None:
        self._uncertain.labels(OUTBOX, destination).inc(events)

    def died(self, events: int) -> None:
        self._died.inc(events)

    def dropped(self, events: int) -> None:
        self._dropped.inc(events)

    def mismatched(self, rows: int) -> None:
        self._mismatched.inc(rows)

    def lost_buckets(self, count: int) -> None:
        self._lost.inc(count)

    def database_failed(self, doing: str) -> None:
        self._database_failures.labels(OUTBOX, doing).inc()

    def woken(self) -> None:
        self._wake_ups.inc()

    def measured(self, *, buckets: int, unsettled: int, blocked: int, unrouted: int) -> None:
        self._buckets.set(buckets)
        self._unsettled.set(unsettled)
        self._blocked.set(blocked)
        self._unrouted.set(unrouted)

    def surveyed(self, survey: Survey | None) -> None:
        self._pending.set(survey.pending if survey else 0)
        self._oldest.set(survey.oldest_pending_seconds if survey else 0)
        self._dead.set(survey.dead if survey else 0)
        self._survey_time.set(self._wall_clock() if survey else 0)

    def purged(self, rows: int) -> None:
        self._purged.inc(rows)

    def _declare_publishing(self) -> None:
        self._published = self._counter(
            "published", "Events acknowledged by a destination", "destination"
        )
        self._ages = _Ages(
            "outboxd_outbox_publish_latency_seconds",
            "Event inserted until acknowledged by a destination",
        )
        self._registry.register(self._ages)
        stages = Histogram(
            "outboxd_outbox_batch_duration_seconds",
            "Time of a read, of a call to a destination, or of a batch of marks",
            ("outbox", "stage"),
            registry=self._registry,
            buckets=DURATION_BOUNDS,
        )
        self._durations = {stage: stages.labels(OUTBOX, stage.value) for stage in Stage}
        self._rows = Histogram(
            "outboxd_outbox_batch_rows",
            "Events acknowledged by one call",
            ("outbox",),
            registry=self._registry,
            buckets=ROW_BOUNDS,
        ).labels(OUTBOX)
        self._last_publish = self._gauge(
            "last_publish_timestamp_seconds", "Unix time of the last acknowledged event"
        ).labels(OUTBOX)

    def _declare_faults(self) -> None:
        self._failures = self._counter(
            "publish_failures",
            "Events that a destination did not take",
            "destination",
            "error_type",
        )
        self._outages = self._counter(
            "destination_outages", "Failed calls that paused a destination", "destination", "kind"
        )
        self._up = self._gauge(
            "destination_up", "0 from a failed call until the next successful one", "destination"
        )
        self._uncertain = self._counter(
            "ambiguous", "Events sent again because a call got no answer", "destination"
        )
        self._died = self._counter("dead", "Events given up").labels(OUTBOX)
        self._dropped = self._counter(
            "unrouted_dropped", "Events dropped for want of a route"
        ).labels(OUTBOX)
        self._mismatched = self._counter(
            "settle_rows_mismatch", "Rows that stayed pending although marked as published"
        ).labels(OUTBOX)
        self._lost = self._counter("lease_lost", "Buckets whose lease ran out").labels(OUTBOX)
        self._wake_ups = self._counter(
            "wake_ups", "Sleeps of the relay that a producer's commit has ended"
        ).labels(OUTBOX)
        self._purged = self._counter("purged", "Published rows deleted after the retention").labels(
            OUTBOX
        )
        self._database_failures = self._counter(
            "database_failures", "Statements that failed because of the database", "doing"
        )
        for doing in LOOPS:
            self._database_failures.labels(OUTBOX, doing)

    def _declare_levels(self) -> None:
        levels = {
            "pending_rows": "Unpublished rows, counted up to 100001",
            "oldest_pending_age_seconds": "Age of the oldest unpublished row, 0 when there is none",
            "dead_rows": "Rows given up and neither requeued nor discarded, counted up to 10001",
            "stats_last_success_timestamp_seconds": "Unix time at which rows were last counted",
            "buckets_owned": "Of 64, those that this relay publishes",
            "unsettled_rows": "Rows accepted by their destinations and not marked yet",
            "blocked_keys": "Aggregates that wait because their next event failed",
            "unrouted_keys": "Aggregates that wait because no route matches their next event",
        }
        gauges = {name: self._gauge(name, text).labels(OUTBOX) for name, text in levels.items()}
        self._pending = gauges["pending_rows"]
        self._oldest = gauges["oldest_pending_age_seconds"]
        self._dead = gauges["dead_rows"]
        self._survey_time = gauges["stats_last_success_timestamp_seconds"]
        self._buckets = gauges["buckets_owned"]
        self._unsettled = gauges["unsettled_rows"]
        self._blocked = gauges["blocked_keys"]
        self._unrouted = gauges["unrouted_keys"]

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"outboxd_outbox_{name}", text, ("outbox", *labels), registry=self._registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"outboxd_outbox_{name}", text, ("outbox", *labels), registry=self._registry)


class _Ages(Collector):
    """A histogram that takes a whole pack at once: one observation each would be the dearest thing
    that is done for an event here."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text
        self._counts = [0] * (len(AGE_BOUNDS) + 1)
        self._sum = 0.0

    def observe(self, ages: Sequence[float]) -> None:
        for age in ages:
            self._counts[bisect_left(AGE_BOUNDS, age)] += 1
        self._sum += sum(ages)

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=("outbox",))
        bounds = (*(str(bound) for bound in AGE_BOUNDS), "+Inf")
        buckets = list(zip(bounds, accumulate(self._counts), strict=True))
        family.add_metric((OUTBOX,), buckets, self._sum)
        yield family
