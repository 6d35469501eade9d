"""What each alert is to fire on, and what it is to be silent about.

Values are in promtool's notation, one a minute: `0+5x20` grows by five, `1x20` stays.
"""

import msgspec

JOB = {"job": "outboxd", "instance": "a:9464"}


class Story(msgspec.Struct, frozen=True):
    """`series` by selector without job and instance, which all of them have; `fires` are the labels
    that the alert has at `minute`, one set for each; none means silence."""

    alert: str
    series: dict[str, str]
    fires: tuple[dict[str, str], ...] = ()
    minute: int = 20


def fires(alert: str, series: dict[str, str], *labels: dict[str, str], minute: int = 20) -> Story:
    return Story(alert, series, labels or ({},), minute)


def silent(alert: str, series: dict[str, str], minute: int = 20) -> Story:
    return Story(alert, series, (), minute)


def _child(name: str, **labels: str) -> str:
    return _series(name, child="relay", **labels)


def _orders(name: str, **labels: str) -> str:
    return _series(name, queue="orders", **labels)


def _outbox(name: str, **labels: str) -> str:
    return _series(name, outbox="default", **labels)


def _series(name: str, **labels: str) -> str:
    pairs = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"outboxd_{name}{{{pairs}}}"


_RELAY = {**JOB, "child": "relay"}
_POOL = {**JOB, "child": "consumer:orders/1"}
_UP = _series("build_info", version="1", revision="r", python="3")
_RELAY_UP = _child("child_up", kind="relay")
_POOL_UP = _series("child_up", child="consumer:orders/1", kind="consumer")
_ORDERS = {"job": "outboxd", "queue": "orders"}
_OUTBOX = {"job": "outboxd", "outbox": "default"}
_MAILER = {**_ORDERS, "handler": "mailer"}
_STOPPING = _series("shutdown_in_progress")
_PENDING = _outbox("outbox_pending_rows")
_PUBLISHED = _outbox("outbox_published_total", destination="sqs:orders")
_VISIBLE = _orders("queue_messages", state="visible")
_RECEIVED = _orders("messages_received_total")
_PAUSED = _orders("queue_paused")
_STARTED = _orders("oldest_in_progress_start_timestamp_seconds")
_OK = _orders("messages_processed_total", handler="mailer", outcome="ok")
_RETRY = _orders("messages_processed_total", handler="mailer", outcome="retry")
_DUPLICATE = _orders("messages_processed_total", handler="mailer", outcome="duplicate")
_WITHIN = _orders("end_to_end_latency_seconds_bucket", handler="mailer", le="60.0")
_ALL = _orders("end_to_end_latency_seconds_count", handler="mailer")
_COUNTED = _orders("queue_attributes_last_success_timestamp_seconds")
_SURVEYED = _outbox("outbox_stats_last_success_timestamp_seconds")
_TOLD = _child("child_last_metrics_timestamp_seconds")
_RUNNING = _orders("messages_in_progress", handler="mailer")
_LIMIT = _orders("concurrency_limit")
_LETTERS = _orders("queue_dlq_messages")

STORIES = (
    # a scrape that fails; no daemon at all; both is well
    fires("OutboxdDown", {"up{}": "1x5 0x20", _UP: "1x30"}, JOB),
    fires("OutboxdDown", {"up{}": "1x5 _x20", _UP: "1x5 _x20"}),
    silent("OutboxdDown", {"up{}": "1x15 0 0 1x10", _UP: "1x30"}),
    fires("OutboxdChildDown", {_RELAY_UP: "1x5 0x20"}, {**_RELAY, "kind": "relay"}),
    silent("OutboxdChildDown", {_RELAY_UP: "0x1 1x9 0x3 1x9"}),
    silent("OutboxdChildDown", {_RELAY_UP: "1x5 0x20", _STOPPING: "0x5 1x20"}),
    silent("OutboxdChildDown", {_POOL_UP: "1x5 0x20"}),
    fires("OutboxdConsumerDown", {_POOL_UP: "1x5 0x20"}, {**_POOL, "kind": "consumer"}),
    silent("OutboxdConsumerDown", {_POOL_UP: "1x30"}),
    silent("OutboxdConsumerDown", {_POOL_UP: "1x5 0x20", _STOPPING: "0x5 1x20"}),
    fires(
        "OutboxdChildCrashLooping",
        {
            _child("child_restarts_total", reason="signal"): "0x10 1 2 3x20",
            _child("child_restarts_total", reason="crash"): "0x10 1 1 2x20",
        },
        _RELAY,
    ),
    silent(
        "OutboxdChildCrashLooping",
        {
            _child("child_restarts_total", reason="signal"): "0x10 1 2x20",
            _child("child_restarts_total", reason="recycle_age"): "0+1x30",
            _child("child_restarts_total", reason="reload"): "0+1x30",
        },
    ),
    fires(
        "OutboxdHandlerTimeouts",
        {
            _series(
                "child_restarts_total", child="consumer:orders/1", reason="handler_timeout"
            ): "0x9 1 2 3 4 5x20"
        },
        _POOL,
    ),
    silent(
        "OutboxdHandlerTimeouts",
        {
            _series(
                "child_restarts_total", child="consumer:orders/1", reason="handler_timeout"
            ): "0x9 1x20"
        },
    ),
    fires("OutboxdConfigReloadFailed", {_series("config_last_reload_successful"): "0x20"}, JOB),
    silent("OutboxdConfigReloadFailed", {_series("config_last_reload_successful"): "0x14 1x10"}),
    fires("OutboxdMemoryHigh", {_child("child_resident_memory_bytes"): "1200000000x30"}, _RELAY),
    silent("OutboxdMemoryHigh", {_child("child_resident_memory_bytes"): "90000000x30"}),
    fires("OutboxdMetricsStale", {_TOLD: "60x20", _RELAY_UP: "1x20"}, _RELAY),
    silent("OutboxdMetricsStale", {_TOLD: "0+60x20", _RELAY_UP: "1x20"}),
    silent("OutboxdMetricsStale", {_TOLD: "60x20", _RELAY_UP: "0x20"}),
    fires("OutboxdCountsStale", {_COUNTED: "60x20", _SURVEYED: "0+60x20"}, _ORDERS),
    fires("OutboxdCountsStale", {_COUNTED: "0+60x20", _SURVEYED: "0x20"}, _OUTBOX),
    silent("OutboxdCountsStale", {_COUNTED: "0+60x20", _SURVEYED: "0+60x20"}),
    # never counted, and so without a time of it; or without its dead-letter queue
    fires("OutboxdCountsStale", {_LIMIT: "10x20"}, _ORDERS),
    fires("OutboxdCountsStale", {_LIMIT: "10x20", _COUNTED: "0+60x20"}, _ORDERS),
    silent("OutboxdCountsStale", {_LIMIT: "10x20", _COUNTED: "0+60x20", _LETTERS: "0x20"}),
    fires(
        "OutboxdMetricsDropped",
        {_child("metrics_series_dropped_total"): "0+4x20"},
        {"job": "outboxd", "child": "relay"},
    ),
    fires(
        "OutboxdMetricsDropped",
        {_orders("user_metrics_refused_total", reason="name"): "0+4x20"},
        _ORDERS,
    ),
    fires(
        "OutboxdMetricsDropped", {_series("metrics_families_left_out"): "1x20"}, {"job": "outboxd"}
    ),
    silent(
        "OutboxdMetricsDropped",
        {
            _child("metrics_series_dropped_total"): "7x20",
            _orders("user_metrics_refused_total", reason="name"): "0x20",
            _series("metrics_families_left_out"): "0x20",
        },
    ),
    fires("OutboxdRelayLag", {_outbox("outbox_oldest_pending_age_seconds"): "0+60x20"}, _OUTBOX),
    silent("OutboxdRelayLag", {_outbox("outbox_oldest_pending_age_seconds"): "0 60 121 0 3x20"}),
    fires("OutboxdRelayStalled", {_PENDING: "12x20", _PUBLISHED: "7x20"}, _OUTBOX),
    silent("OutboxdRelayStalled", {_PENDING: "12x20", _PUBLISHED: "0+1x20"}),
    silent("OutboxdRelayStalled", {_PENDING: "0x20", _PUBLISHED: "7x20"}),
    fires("OutboxdBucketsUnowned", {_outbox("outbox_buckets_owned"): "64x5 40x20"}, _OUTBOX),
    silent("OutboxdBucketsUnowned", {_outbox("outbox_buckets_owned"): "64x5 30 64x20"}),
    fires(
        "OutboxdDestinationDown",
        {_outbox("outbox_destination_up", destination="sqs:orders"): "1x5 0x20"},
        {**_OUTBOX, "destination": "sqs:orders"},
    ),
    silent(
        "OutboxdDestinationDown",
        {_outbox("outbox_destination_up", destination="sqs:orders"): "1x5 0x5 1x20"},
    ),
    fires("OutboxdAggregatesBlocked", {_outbox("outbox_blocked_keys"): "3x60"}, _OUTBOX, minute=50),
    silent("OutboxdAggregatesBlocked", {_outbox("outbox_blocked_keys"): "3x25 0 3x25"}, minute=50),
    fires("OutboxdEventsUnrouted", {_outbox("outbox_unrouted_keys"): "1x20"}, _OUTBOX),
    fires("OutboxdEventsUnrouted", {_outbox("outbox_unrouted_dropped_total"): "0+1x20"}, _OUTBOX),
    silent(
        "OutboxdEventsUnrouted",
        {_outbox("outbox_unrouted_keys"): "0x20", _outbox("outbox_unrouted_dropped_total"): "9x20"},
    ),
    fires("OutboxdDeadEvents", {_outbox("outbox_dead_rows"): "2x30"}, _OUTBOX),
    silent("OutboxdDeadEvents", {_outbox("outbox_dead_rows"): "0x30"}),
    fires(
        "OutboxdDatabaseFailures",
        {_outbox("outbox_database_failures_total", doing="read"): "0+2x20"},
        {**_OUTBOX, "doing": "read"},
    ),
    silent(
        "OutboxdDatabaseFailures",
        {_outbox("outbox_database_failures_total", doing="read"): "0x15 2x20"},
    ),
    fires(
        "OutboxdQueueNotConsumed", {_VISIBLE: "5x20", _RECEIVED: "9x20", _PAUSED: "0x20"}, _ORDERS
    ),
    silent("OutboxdQueueNotConsumed", {_VISIBLE: "5x20", _RECEIVED: "0+1x20", _PAUSED: "0x20"}),
    silent("OutboxdQueueNotConsumed", {_VISIBLE: "0x20", _RECEIVED: "9x20", _PAUSED: "0x20"}),
    silent("OutboxdQueueNotConsumed", {_VISIBLE: "5x20", _RECEIVED: "9x20", _PAUSED: "1x20"}),
    fires("OutboxdQueuePaused", {_PAUSED: "1x90"}, _ORDERS, minute=80),
    silent("OutboxdQueuePaused", {_PAUSED: "1x50 0 1x30"}, minute=80),
    fires(
        "OutboxdReceivingBlocked",
        {_orders("receiving_blocked", by="database"): "1x20"},
        {**_ORDERS, "by": "database"},
    ),
    silent(
        "OutboxdReceivingBlocked",
        {
            _orders("receiving_blocked", by="database"): "0x20",
            _orders("receiving_blocked", by="paused"): "1x20",
        },
    ),
    fires("OutboxdReceiveErrors", {_orders("receives_total", result="error"): "0+2x20"}, _ORDERS),
    silent(
        "OutboxdReceiveErrors",
        {
            _orders("receives_total", result="error"): "0x15 2x20",
            _orders("receives_total", result="empty"): "0+9x20",
        },
    ),
    fires("OutboxdEndToEndSlow", {_WITHIN: "0+97x40", _ALL: "0+100x40"}, _MAILER, minute=40),
    silent("OutboxdEndToEndSlow", {_WITHIN: "0+997x40", _ALL: "0+1000x40"}, minute=40),
    silent("OutboxdEndToEndSlow", {_WITHIN: "0x40", _ALL: "0x40"}, minute=40),
    fires("OutboxdHandlerErrors", {_OK: "0+90x30", _RETRY: "0+10x30"}, _MAILER, minute=25),
    silent("OutboxdHandlerErrors", {_OK: "0+99x30", _RETRY: "0+1x30"}, minute=25),
    silent("OutboxdHandlerErrors", {_OK: "0+3x30", _RETRY: "0+1x30"}, minute=25),
    fires(
        "OutboxdHandlerErrors",
        {_OK: "0+90x30", _RETRY: "0+10x30", _DUPLICATE: "0+900x30"},
        _MAILER,
        minute=25,
    ),
    fires(
        "OutboxdDeadLetters",
        {_orders("dead_letters_total", handler="mailer", reason="rejected"): "0x15 1x9"},
        {**_MAILER, "reason": "rejected"},
    ),
    silent(
        "OutboxdDeadLetters",
        {_orders("dead_letters_total", handler="mailer", reason="rejected"): "0 4x30"},
        minute=25,
    ),
    fires("OutboxdDeadLettersWaiting", {_LETTERS: "3x90"}, _ORDERS, minute=80),
    silent("OutboxdDeadLettersWaiting", {_LETTERS: "3x50 0x40"}, minute=80),
    fires("OutboxdVisibilityLost", {_orders("visibility_lost_total"): "0x15 1x9"}, _ORDERS),
    silent("OutboxdVisibilityLost", {_orders("visibility_lost_total"): "0 4x30"}),
    fires("OutboxdHandlerStuck", {_STARTED: "60x30"}, {**JOB, "queue": "orders"}),
    silent("OutboxdHandlerStuck", {_STARTED: "0x30"}),
    silent("OutboxdHandlerStuck", {_STARTED: "60x10 1000x20"}),
    fires(
        "OutboxdPoolSaturated",
        {_RUNNING: "10x60", _LIMIT: "10x60", _VISIBLE: "8x60"},
        _ORDERS,
        minute=50,
    ),
    silent(
        "OutboxdPoolSaturated",
        {_RUNNING: "10x60", _LIMIT: "10x60", _VISIBLE: "0x60"},
        minute=50,
    ),
    silent(
        "OutboxdPoolSaturated",
        {_RUNNING: "9x60", _LIMIT: "10x60", _VISIBLE: "8x60"},
        minute=50,
    ),
    fires(
        "OutboxdInboxNotPurged",
        {_orders("inbox_purge_failures_total"): "0+0.1x280"},  # once in ten minutes
        _ORDERS,
        minute=270,
    ),
    # a database that is away for some minutes
    silent(
        "OutboxdInboxNotPurged",
        {_orders("inbox_purge_failures_total"): "0x10 0+2x5 10x270"},
        minute=270,
    ),
    silent(
        "OutboxdInboxNotPurged",
        {_orders("inbox_purge_failures_total"): "0x10 0+2x5 10x270"},
        minute=20,
    ),
)
