"""A status as a test wants it."""

from typing import Any

import msgspec

from outboxd.supervision.status.model import (
    Child,
    Destination,
    Handler,
    Outbox,
    OutboxHistory,
    Queue,
    QueueHistory,
    Status,
    Trouble,
)
from outboxd.supervision.status.problems import health_of, problems_of, summary_of
from outboxd.supervision.status.totals import totals_of


def a_child(name: str = "relay", state: str = "ready", **more: Any) -> Child:
    child = Child(
        name=name,
        kind=name.partition(":")[0],
        state=state,
        pid=4711,
        up_seconds=75.0,
        restarts=0,
        failures=0,
        recent_failures=0,
        rss_bytes=50 << 20,
        heartbeat_age_seconds=0.5,
        in_flight=None,
    )
    return msgspec.structs.replace(child, **more)


def an_outbox(**more: Any) -> Outbox:
    outbox = Outbox(
        pending=0,
        oldest_seconds=0.0,
        dead=0,
        counted_seconds_ago=3.0,
        published_per_second=7.5,
        publish_p95_seconds=0.04,
        recent_failures=0,
        database_failures_per_second=0.0,
        blocked_aggregates=0,
        unrouted_aggregates=0,
        destinations=(Destination(name="sqs:orders", up=True, published_per_second=7.5),),
        history=OutboxHistory(pending=(1, None, 0), oldest_seconds=(), published_per_second=()),
    )
    return msgspec.structs.replace(outbox, **more)


def a_queue(name: str = "orders", **more: Any) -> Queue:
    queue = Queue(
        name=name,
        dead_letter_queue=f"{name}-dlq",
        paused=False,
        blocked_by=(),
        visible=0,
        in_flight=0,
        delayed=0,
        dead_letters=0,
        counted_seconds_ago=3.0,
        running=0,
        concurrency=10,
        received_per_second=0.0,
        handled_per_second=0.0,
        p50_seconds=None,
        p95_seconds=None,
        recent_retries=0,
        recent_dead_letters=0,
        receive_errors_per_second=0.0,
        history=QueueHistory(visible=(0.0,) * 6, handled_per_second=(), p95_seconds=()),
    )
    return msgspec.structs.replace(queue, **more)


def a_handler(name: str = "ship", queue: str = "orders", **more: Any) -> Handler:
    handler = Handler(
        queue=queue,
        name=name,
        running=0,
        handled_per_second=0.0,
        p95_seconds=None,
        failed_share=None,
        recent_retries=0,
        recent_dead_letters=0,
    )
    return msgspec.structs.replace(handler, **more)


def a_status(
    *,
    broken: tuple[str, ...] = (),
    not_ready: tuple[str, ...] = (),
    children: tuple[Child, ...] = (a_child(),),
    outbox: Outbox | None = None,
    queues: tuple[Queue, ...] = (),
    handlers: tuple[Handler, ...] = (),
    errors: tuple[Trouble, ...] = (),
    stopping: bool = False,
    reload_refused: bool = False,
    heartbeat_interval_seconds: float = 2.0,
) -> Status:
    """The status that such facts make."""
    problems = problems_of(
        broken=broken,
        not_ready=not_ready,
        children=children,
        outbox=outbox,
        queues=queues,
        handlers=handlers,
        reload_refused=reload_refused,
        heartbeat_interval_seconds=heartbeat_interval_seconds,
    )
    health = health_of(problems, children, stopping=stopping)
    return Status(
        at=1_800_000_000.0,
        host="shop-1",
        version="1.2.3",
        health=health,
        summary=summary_of(health, problems),
        up_seconds=200.0,
        observed_seconds=200.0,
        step_seconds=10.0,
        problems=problems,
        totals=totals_of(queues, children),
        children=children,
        outbox=outbox,
        queues=queues,
        handlers=handlers,
        errors=errors,
    )
