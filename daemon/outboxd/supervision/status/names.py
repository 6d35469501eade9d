"""Which metrics the status page is made of."""

PROCESSED = "outboxd_messages_processed_total"
RECEIVED = "outboxd_messages_received_total"
RECEIVES = "outboxd_receives_total"
RETRIES = "outboxd_retries_total"
LETTERS = "outboxd_dead_letters_total"
LATENCY = "outboxd_end_to_end_latency_seconds"
DURATION = "outboxd_handler_duration_seconds"
RUNNING = "outboxd_messages_in_progress"
BLOCKED = "outboxd_receiving_blocked"
DEPTH = "outboxd_queue_messages"
WAITING_LETTERS = "outboxd_queue_dlq_messages"
DEPTH_AT = "outboxd_queue_attributes_last_success_timestamp_seconds"

PENDING = "outboxd_outbox_pending_rows"
OLDEST = "outboxd_outbox_oldest_pending_age_seconds"
DEAD_ROWS = "outboxd_outbox_dead_rows"
COUNTED_AT = "outboxd_outbox_stats_last_success_timestamp_seconds"
PUBLISHED = "outboxd_outbox_published_total"
PUBLISH_LATENCY = "outboxd_outbox_publish_latency_seconds"
REFUSED = "outboxd_outbox_publish_failures_total"
OUTAGES = "outboxd_outbox_destination_outages_total"
UP = "outboxd_outbox_destination_up"
DATABASE_FAILURES = "outboxd_outbox_database_failures_total"
DIED = "outboxd_outbox_dead_total"
BLOCKED_KEYS = "outboxd_outbox_blocked_keys"
UNROUTED_KEYS = "outboxd_outbox_unrouted_keys"

RESTARTS = "outboxd_child_restarts_total"
LOST_LEASES = "outboxd_visibility_lost_total"
EXTENSIONS = "outboxd_visibility_extensions_total"
DELETE_FAILURES = "outboxd_delete_failures_total"
PURGE_FAILURES = "outboxd_inbox_purge_failures_total"
SERIES_DROPPED = "outboxd_metrics_series_dropped_total"
USER_METRICS_REFUSED = "outboxd_user_metrics_refused_total"
RELOAD_GOOD = "outboxd_config_last_reload_successful"
PAUSED = "outboxd_queue_paused"
CONCURRENCY = "outboxd_concurrency_limit"

NAMES = frozenset(
    {
        *(PROCESSED, RECEIVED, RECEIVES, RETRIES, LETTERS, RUNNING, BLOCKED),
        *(f"{LATENCY}_bucket", f"{DURATION}_bucket", f"{PUBLISH_LATENCY}_bucket"),
        *(DEPTH, WAITING_LETTERS, DEPTH_AT, PENDING, OLDEST, DEAD_ROWS, COUNTED_AT, PUBLISHED),
        *(REFUSED, OUTAGES, UP, DATABASE_FAILURES, DIED, BLOCKED_KEYS, UNROUTED_KEYS, RESTARTS),
        *(LOST_LEASES, EXTENSIONS, DELETE_FAILURES, PURGE_FAILURES, SERIES_DROPPED),
        *(USER_METRICS_REFUSED, RELOAD_GOOD, PAUSED, CONCURRENCY),
    }
)
