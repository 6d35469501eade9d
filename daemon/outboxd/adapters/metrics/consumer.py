"""A consumer pool's metrics."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind
from outboxd.core.judging import RetryCause
from outboxd.core.outcomes import DeadReason
from outboxd.core.settings import QueueSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.progress import Progress
from outboxd.ports.queue import Depth

_CALL_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_HANDLER_BUCKETS = (*_CALL_BUCKETS, 60, 120, 300)
_WAIT_BUCKETS = (0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_LATENCY_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)

_POISON = (DeadReason.MALFORMED, DeadReason.INVALID_PAYLOAD, DeadReason.UNKNOWN_TYPE)
_OPERATIONS = ("receive", "delete", "extend", "send", "attributes", "lookup")
_NO_HANDLER = ""
_OBSTACLES = ("extender", "database", "paused", "suspects")
"""The values of actors.consumer.gates.Obstacle, which adapters do not know."""
_GLOBAL = "; every process reports the same queue: aggregate with max, never with sum"


class ConsumerMetrics:
    """Counts what a pool tells, in the given registry; implements ConsumerObserver.

    Every series that the configuration foresees exists from the start with 0. Each is looked up
    once, since `labels()` costs more than the counting.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        queue: str,
        settings: QueueSettings,
        progress: Progress,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._queue = queue
        self._wall_clock = wall_clock
        handlers = [handler.name for handler in settings.handlers]
        self._declare_receives()
        self._declare_outcomes([*handlers, _NO_HANDLER])
        self._declare_poison()
        self._declare_handlers(handlers)
        self._declare_latencies(handlers)
        self._declare_queue_state()
        self._declare_slots(settings, progress)

    def received(self, count: int, redelivered: int) -> None:
        self._last_receive.set(self._wall_clock())
        if not count:
            self._receives["empty"].inc()
            return
        self._receives["messages"].inc()
        self._messages.inc(count)
        self._redelivered.inc(redelivered)

    def receive_failed(self, kind: OutageKind) -> None:
        self._receives["error"].inc()

    def waited(self, seconds: float) -> None:
        self._wait.observe(max(0.0, seconds))

    def started(self, handler: str) -> None:
        self._in_progress[handler].inc()

    def finished(self, handler: str, seconds: float, ok: bool) -> None:
        self._in_progress[handler].dec()
        self._durations[handler, ok].observe(seconds)

    def processed(self, handler: str, outcome: Processed) -> None:
        self._processed[handler, outcome].inc()
        if outcome is Processed.DUPLICATE:
            self._duplicates[handler].inc()

    def handled(self, handler: str, seconds_since_occurred: float) -> None:
        if seconds_since_occurred < 0:
            self._skew.inc()
        self._latency[handler].observe(max(0.0, seconds_since_occurred))

    def retried(self, handler: str, cause: RetryCause) -> None:
        self._retries[handler, cause].inc()

    def dead_lettered(self, handler: str, reason: DeadReason) -> None:
        self._letters[handler, reason].inc()

    def poison(self, reason: DeadReason) -> None:
        self._poison[reason].inc()

    def delete_failed(self, reason: str) -> None:
        self._delete_failures.labels(self._queue, reason).inc()

    def sampled(self, depth: Depth) -> None:
        for state, count in (
            ("visible", depth.visible),
            ("in_flight", depth.in_flight),
            ("delayed", depth.delayed),
        ):
            self._depth.labels(self._queue, state).set(count)
        if depth.dead_letters is not None:
            self._dead_letters.labels(self._queue).set(depth.dead_letters)
        else:  # a number from before would look as fresh as the others
            with suppress(KeyError):
                self._dead_letters.remove(self._queue)
        self._sampled_at.labels(self._queue).set(self._wall_clock())

    def called(self, operation: str, result: str, seconds: float) -> None:
        """An SQS call ended; also told from the threads that make them."""
        line = self._calls.get((operation, result))
        if line is None:
            line = self._call_family.labels(self._queue, operation, result)
            self._calls[operation, result] = line
        line.observe(seconds)

    def _declare_receives(self) -> None:
        receives = self._counter("receives", "ReceiveMessage calls", "result")
        self._receives = {
            result: receives.labels(self._queue, result)
            for result in ("messages", "empty", "error")
        }
        self._messages = self._counter("messages_received", "Deliveries, including repeats").labels(
            self._queue
        )
        self._redelivered = self._counter(
            "messages_redelivered", "Deliveries with a receive count above 1"
        ).labels(self._queue)
        self._last_receive = self._gauge(
            "last_receive_success_timestamp_seconds",
            "Unix time of the last ReceiveMessage that was answered",
        ).labels(self._queue)
        self._call_family = self._histogram(
            "sqs_request_duration_seconds", "SQS calls", _CALL_BUCKETS, "operation", "result"
        )
        self._calls = {
            (operation, "ok"): self._call_family.labels(self._queue, operation, "ok")
            for operation in _OPERATIONS
        }

    def _declare_outcomes(self, handlers: Iterable[str]) -> None:
        processed = self._counter(
            "messages_processed",
            "Deliveries by handler, each with exactly one outcome; no handler has the empty name",
            "handler",
            "outcome",
        )
        retries = self._counter("retries", "Messages given back", "handler", "error_type")
        letters = self._counter("dead_letters", "Accepted dead letters", "handler", "reason")
        self._processed = {
            (handler, outcome): processed.labels(self._queue, handler, outcome.value)
            for handler in handlers
            for outcome in Processed
        }
        self._retries = {
            (handler, cause): retries.labels(self._queue, handler, cause.value)
            for handler in handlers
            for cause in RetryCause
        }
        self._letters = {
            (handler, reason): letters.labels(self._queue, handler, reason.value)
            for handler in handlers
            for reason in DeadReason
        }

    def _declare_poison(self) -> None:
        poison = self._counter("poison_messages", "Rejected before a handler ran", "reason")
        self._poison = {reason: poison.labels(self._queue, reason.value) for reason in _POISON}
        self._delete_failures = self._counter(
            "delete_failures", "Deletes not carried out; each may become a duplicate", "error_type"
        )
        for kind in (*OutageKind, "refused"):
            self._delete_failures.labels(self._queue, str(kind))

    def _declare_handlers(self, handlers: Iterable[str]) -> None:
        in_progress = self._gauge("messages_in_progress", "Handlers running now", "handler")
        self._in_progress = {h: in_progress.labels(self._queue, h) for h in handlers}
        duplicates = self._counter("inbox_duplicates", "Skipped by the inbox", "handler")
        self._duplicates = {h: duplicates.labels(self._queue, h) for h in handlers}
        durations = self._histogram(
            "handler_duration_seconds",
            "Calls of handlers, with their inbox transactions",
            _HANDLER_BUCKETS,
            "handler",
            "outcome",
        )
        self._durations = {
            (h, ok): durations.labels(self._queue, h, "ok" if ok else "error")
            for h in handlers
            for ok in (True, False)
        }

    def _declare_latencies(self, handlers: Iterable[str]) -> None:
        self._wait = self._histogram(
            "queue_wait_seconds",
            "From being sent to the first handler's call, first deliveries only",
            _WAIT_BUCKETS,
        ).labels(self._queue)
        latency = self._histogram(
            "end_to_end_latency_seconds",
            "From the event's occurred_at to its effect",
            _LATENCY_BUCKETS,
            "handler",
        )
        self._latency = {h: latency.labels(self._queue, h) for h in handlers}
        self._skew = self._counter(
            "clock_skew", "Messages whose occurred_at lies in the future"
        ).labels(self._queue)

    def _declare_queue_state(self) -> None:
        """Without series until the first sample: only one process of a pool takes any."""
        self._depth = self._gauge("queue_messages", f"Approximate counts of SQS{_GLOBAL}", "state")
        self._dead_letters = self._gauge(
            "queue_dlq_messages", f"Visible messages in the dead-letter queue{_GLOBAL}"
        )
        self._sampled_at = self._gauge(
            "queue_attributes_last_success_timestamp_seconds",
            "Unix time at which the queue was last counted",
        )

    def _declare_slots(self, settings: QueueSettings, progress: Progress) -> None:
        limit = self._gauge("concurrency_limit", "Messages that may be in progress at a time")
        limit.labels(self._queue).set(settings.concurrency)
        oldest = self._gauge(
            "oldest_in_progress_start_timestamp_seconds",
            "Unix time at which the longest-running call began, 0 when idle",
        )
        oldest.labels(self._queue).set_function(lambda: self._oldest(progress))

        blocked = self._gauge(
            "receiving_blocked",
            "Processes that receive nothing for this reason; several may hold at a time",
            "by",
        )
        for obstacle in _OBSTACLES:
            is_met = partial(_is_met, progress, obstacle)
            blocked.labels(self._queue, obstacle).set_function(is_met)

    def _oldest(self, progress: Progress) -> float:
        started_at = progress.oldest_started_at
        if started_at is None:
            return 0.0
        return self._wall_clock() - (boottime() - started_at)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"outboxd_{name}", text, ("queue", *labels), registry=self._registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"outboxd_{name}", text, ("queue", *labels), registry=self._registry)

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        return Histogram(
            f"outboxd_{name}", text, ("queue", *labels), buckets=buckets, registry=self._registry
        )


def _is_met(progress: Progress, obstacle: str) -> float:
    return float(obstacle in progress.obstacles())
