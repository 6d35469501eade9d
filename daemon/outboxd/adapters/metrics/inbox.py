"""The metrics of the inbox's janitor."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from outboxd.ports.inbox_upkeep import Kept


class InboxMetrics:
    """Counts what the janitor of one pool tells; implements InboxObserver. Every series exists from
    the start. Purging is one pool's work at a time, whichever it is: add them up."""

    def __init__(self, registry: CollectorRegistry, queue: str) -> None:
        purged = Counter(
            "outboxd_inbox_purged",
            "Rows of the inbox deleted after the retention",
            ("queue", "table"),
            registry=registry,
        )
        self._purged = {kept: purged.labels(queue, kept.value) for kept in Kept}
        self._kept = Gauge(
            "outboxd_inbox_kept_seconds",
            "Age up to which inbox marks are kept; above the retention after an outage",
            ("queue",),
            registry=registry,
        ).labels(queue)
        self._failures = Counter(
            "outboxd_inbox_purge_failures",
            "Rounds of the inbox's janitor that the database or SQS cut short",
            ("queue",),
            registry=registry,
        ).labels(queue)

    def purged(self, kept: Kept, rows: int) -> None:
        self._purged[kept].inc(rows)

    def kept(self, seconds: float) -> None:
        self._kept.set(seconds)

    def failed(self) -> None:
        self._failures.inc()
