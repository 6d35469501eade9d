"""The extender's metrics."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SLACK_BUCKETS = (0.5, 1, 2.5, 5, 10, 15, 30, 60)


class ExtenderMetrics:
    """Counts what the extender tells; implements ExtenderObserver.

    The series of every configured queue exist from the start with 0.
    """

    def __init__(self, registry: CollectorRegistry, queues: Iterable[str]) -> None:
        self._extensions = Counter(
            "outboxd_visibility_extensions",
            "Extension attempts by result; limit: the permitted time or SQS's 12 hours were over",
            ["queue", "result"],
            registry=registry,
        )
        self._returns = Counter(
            "outboxd_visibility_returns",
            "Attempts to make a dead consumer's messages visible again",
            ["queue", "result"],
            registry=registry,
        )
        self._slack = Histogram(
            "outboxd_visibility_slack_seconds",
            "Time left on the lease when it was extended",
            ["queue"],
            buckets=SLACK_BUCKETS,
            registry=registry,
        )
        self._tracked = Gauge(
            "outboxd_visibility_tracked_messages",
            "Receipts under extension now",
            ["queue"],
            registry=registry,
        )
        self._lost = Counter(
            "outboxd_visibility_lost",
            "Leases that ended under a running handler (a duplicate delivery is likely)",
            ["queue"],
            registry=registry,
        )
        self._extended: dict[str, tuple[Counter, Histogram]] = {}
        for queue in queues:
            self._create_series(queue)

    def _create_series(self, queue: str) -> None:
        for result in ("lost", "error", "limit"):
            self._extensions.labels(queue, result)
        # The one that is told all the time is looked up once.
        self._extended[queue] = (
            self._extensions.labels(queue, "ok"),
            self._slack.labels(queue),
        )
        for result in ("ok", "error"):
            self._returns.labels(queue, result)
        for metric in (self._tracked, self._lost):
            metric.labels(queue)

    def extended(self, queue: str, slack_seconds: float) -> None:
        if queue not in self._extended:  # a pool's that knows more queues than we were told of
            self._create_series(queue)
        count, slack = self._extended[queue]
        count.inc()
        slack.observe(max(0.0, slack_seconds))

    def extension_refused(self, queue: str) -> None:
        self._extensions.labels(queue, "lost").inc()

    def extension_failed(self, queue: str) -> None:
        self._extensions.labels(queue, "error").inc()

    def limit_reached(self, queue: str) -> None:
        self._extensions.labels(queue, "limit").inc()

    def lease_lost(self, queue: str) -> None:
        self._lost.labels(queue).inc()

    def given_back(self, queue: str) -> None:
        self._returns.labels(queue, "ok").inc()

    def giving_back_failed(self, queue: str) -> None:
        self._returns.labels(queue, "error").inc()

    def tracking(self, queue: str, leases: int) -> None:
        self._tracked.labels(queue).set(leases)
