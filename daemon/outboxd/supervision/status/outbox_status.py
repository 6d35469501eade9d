"""The outbox as the page shows it."""

from collections.abc import Sequence

from outboxd.supervision.status import names
from outboxd.supervision.status.model import Destination, Outbox, OutboxHistory
from outboxd.supervision.status.readings import Readings, age, whole
from outboxd.supervision.status.steps import Steps


def outbox_status(destinations: Sequence[str], now: Readings, steps: Steps, wall: float) -> Outbox:
    """The outbox, at the Unix time `wall`. A relay that has not counted it says 0: not known."""
    counted_at = now.sum(names.COUNTED_AT) or None
    counted = counted_at is not None
    return Outbox(
        pending=whole(now.sum(names.PENDING)) if counted else None,
        oldest_seconds=now.sum(names.OLDEST) if counted else None,
        dead=whole(now.sum(names.DEAD_ROWS)) if counted else None,
        counted_seconds_ago=age(counted_at, wall),
        published_per_second=steps.rate("published"),
        publish_p95_seconds=steps.quantile(0.95, "publish latency"),
        recent_failures=steps.total("refused"),
        database_failures_per_second=steps.rate("database failures"),
        blocked_aggregates=whole(now.sum(names.BLOCKED_KEYS)),
        unrouted_aggregates=whole(now.sum(names.UNROUTED_KEYS)),
        destinations=tuple(
            Destination(
                name=name,
                up=_flag(now.sum(names.UP, destination=name)),
                published_per_second=steps.rate("published", name),
            )
            for name in destinations
        ),
        history=OutboxHistory(
            pending=steps.values("pending"),
            oldest_seconds=steps.values("oldest"),
            published_per_second=steps.rates("published"),
        ),
    )


def _flag(value: float | None) -> bool | None:
    return None if value is None else bool(value)
