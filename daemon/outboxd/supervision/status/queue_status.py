"""A queue and its handlers as the page shows them."""

from outboxd.supervision.status import names
from outboxd.supervision.status.model import Handler, Queue, QueueHistory
from outboxd.supervision.status.readings import Readings, age, whole
from outboxd.supervision.status.steps import Steps


def queue_status(
    queue: str, dead_letter_queue: str, now: Readings, steps: Steps, wall: float
) -> Queue:
    """One queue, at the Unix time `wall`."""
    blocked = [dict(labels)["by"] for labels, met in now.items(names.BLOCKED, queue=queue) if met]
    depth = {
        state: whole(now.sum(names.DEPTH, queue=queue, state=state))
        for state in ("visible", "in_flight", "delayed")
    }
    return Queue(
        name=queue,
        dead_letter_queue=dead_letter_queue,
        paused=bool(now.sum(names.PAUSED, queue=queue)),
        blocked_by=tuple(sorted(set(blocked) - {"paused"})),
        visible=depth["visible"],
        in_flight=depth["in_flight"],
        delayed=depth["delayed"],
        dead_letters=whole(now.sum(names.WAITING_LETTERS, queue=queue)),
        counted_seconds_ago=age(now.sum(names.DEPTH_AT, queue=queue), wall),
        running=whole(now.sum(names.RUNNING, queue=queue)),
        concurrency=whole(now.sum(names.CONCURRENCY, queue=queue)),
        received_per_second=steps.rate("received", queue),
        handled_per_second=steps.rate("handled", queue),
        p50_seconds=steps.quantile(0.5, "latency", queue),
        p95_seconds=steps.quantile(0.95, "latency", queue),
        recent_retries=steps.total("retries", queue),
        recent_dead_letters=steps.total("letters", queue),
        receive_errors_per_second=steps.rate("receive errors", queue),
        history=QueueHistory(
            visible=steps.values("visible", queue),
            handled_per_second=steps.rates("handled", queue),
            p95_seconds=steps.values("p95", "latency", queue),
        ),
    )


def handler_status(queue: str, handler: str, now: Readings, steps: Steps) -> Handler:
    """One handler of a queue."""
    return Handler(
        queue=queue,
        name=handler,
        running=whole(now.sum(names.RUNNING, queue=queue, handler=handler)),
        handled_per_second=steps.rate("handled", queue, handler),
        p95_seconds=steps.quantile(0.95, "duration", queue, handler),
        failed_share=steps.share(("failed", queue, handler), ("ended", queue, handler)),
        recent_retries=steps.total("retries", queue, handler),
        recent_dead_letters=steps.total("letters", queue, handler),
    )
