"""The pool's metrics: every foreseeable series from the start, and the names that alerts use."""

from typing import Any

from prometheus_client import CollectorRegistry

from outboxd.actors.consumer.gates import Obstacle
from outboxd.actors.consumer.pool import Pool
from outboxd.adapters.metrics.consumer import ConsumerMetrics
from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind
from outboxd.core.judging import RetryCause
from outboxd.core.outcomes import DeadReason
from outboxd.core.settings import QueueSettings
from outboxd.ports.consumer_observer import ConsumerObserver, Processed
from outboxd.ports.progress import Progress
from outboxd.ports.queue import Depth
from tests.consumer.scene import handler_settings


class Scene:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.progress = Progress()
        settings = QueueSettings(concurrency=4, handlers=(handler_settings("mailer"),))
        self.metrics = ConsumerMetrics(
            self.registry, "orders", settings, self.progress, lambda: 1000.0
        )

    def value(self, name: str, **labels: Any) -> float | None:
        labels = {"queue": "orders", **labels}
        return self.registry.get_sample_value(f"outboxd_{name}", labels)


def test_every_series_that_the_configuration_foresees_starts_at_zero() -> None:
    value = Scene().value
    for outcome in Processed:
        for handler in ("mailer", ""):
            assert value("messages_processed_total", handler=handler, outcome=outcome.value) == 0
    assert value("receives_total", result="error") == 0
    assert value("retries_total", handler="mailer", error_type="timeout") == 0
    assert value("dead_letters_total", handler="mailer", reason="crash") == 0
    assert value("poison_messages_total", reason="malformed") == 0
    assert value("delete_failures_total", error_type="throttled") == 0
    assert value("handler_duration_seconds_count", handler="mailer", outcome="error") == 0
    assert value("sqs_request_duration_seconds_count", operation="receive", result="ok") == 0
    assert value("concurrency_limit") == 4


def test_only_who_counts_the_queue_says_how_long_it_is() -> None:
    scene = Scene()
    assert scene.value("queue_messages", state="visible") is None
    scene.metrics.sampled(Depth(3, 2, 1, None))
    assert scene.value("queue_messages", state="visible") == 3
    assert scene.value("queue_messages", state="delayed") == 1
    assert scene.value("queue_dlq_messages") is None
    scene.metrics.sampled(Depth(3, 2, 1, 4))
    assert scene.value("queue_dlq_messages") == 4
    assert scene.value("queue_attributes_last_success_timestamp_seconds") == 1000


def test_dead_letters_that_cannot_be_counted_any_more_are_not_told_as_they_were() -> None:
    scene = Scene()
    scene.metrics.sampled(Depth(3, 2, 1, 4))
    scene.metrics.sampled(Depth(3, 2, 1, None))
    assert scene.value("queue_messages", state="visible") == 3
    assert scene.value("queue_dlq_messages") is None


def test_what_is_told_is_counted() -> None:
    scene = Scene()
    observer: ConsumerObserver = scene.metrics
    observer.received(0, 0)
    observer.received(3, 1)
    observer.receive_failed(OutageKind.DENIED)
    observer.started("mailer")
    assert scene.value("messages_in_progress", handler="mailer") == 1
    observer.finished("mailer", 0.2, True)
    observer.processed("mailer", Processed.DUPLICATE)
    observer.handled("mailer", -5.0)
    observer.waited(2.0)
    observer.retried("mailer", RetryCause.BUSY)
    observer.dead_lettered("", DeadReason.MALFORMED)
    observer.poison(DeadReason.MALFORMED)
    observer.delete_failed("refused")
    scene.metrics.called("delete", "timeout", 5.0)
    assert scene.value("receives_total", result="messages") == 1
    assert scene.value("messages_received_total") == 3
    assert scene.value("messages_redelivered_total") == 1
    assert scene.value("messages_in_progress", handler="mailer") == 0
    assert scene.value("inbox_duplicates_total", handler="mailer") == 1
    assert scene.value("clock_skew_total") == 1
    assert scene.value("end_to_end_latency_seconds_bucket", handler="mailer", le="0.1") == 1
    assert scene.value("queue_wait_seconds_sum") == 2
    assert scene.value("retries_total", handler="mailer", error_type="busy") == 1
    assert scene.value("dead_letters_total", handler="", reason="malformed") == 1
    assert scene.value("delete_failures_total", error_type="refused") == 1
    calls = scene.value("sqs_request_duration_seconds_count", operation="delete", result="timeout")
    assert calls == 1


def test_the_oldest_call_is_shown_by_its_start() -> None:
    scene = Scene()
    assert scene.value("oldest_in_progress_start_timestamp_seconds") == 0
    scene.progress.oldest_started_at = boottime() - 50
    started = scene.value("oldest_in_progress_start_timestamp_seconds")
    assert started is not None
    assert 940 < started <= 950


def test_what_keeps_the_pool_from_receiving_is_shown_as_long_as_it_does() -> None:
    scene = Scene()
    pool = Pool(
        name="orders", settings=QueueSettings(), observer=scene.metrics, progress=scene.progress
    )
    pool.gates.close(Obstacle.DATABASE)
    pool.gates.clear(Obstacle.EXTENDER)

    blocked = {by: scene.value("receiving_blocked", by=by) for by in Obstacle}

    assert blocked == {by: by is Obstacle.DATABASE for by in Obstacle}
    pool.gates.clear(Obstacle.DATABASE)
    assert scene.value("receiving_blocked", by="database") == 0
