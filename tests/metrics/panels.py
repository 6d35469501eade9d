"""What the dashboard shows: rows of panels, each with its queries.

In a query `$s` stands for the selector of the job, `$q` for that of the job and the queue.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Kind = Literal["stat", "timeseries", "table"]


class Panel(msgspec.Struct, frozen=True):
    """`queries` are pairs of a query and the legend of its lines; `red_from` colours a number."""

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: Kind = "timeseries"
    width: int = 8
    help: str = ""
    red_from: float | None = None


def _number(title: str, query: str, unit: str = "short", red_from: float = 1) -> Panel:
    return Panel(title, [(query, "")], unit, "stat", 4, red_from=red_from)


def _lines(title: str, *queries: tuple[str, str], unit: str = "short", **more: Any) -> Panel:
    return Panel(title, queries, unit, **more)


def _by(how: str, labels: str) -> str:
    return f"{how} by ({labels}) " if labels else how


def _rate(what: str, by: str = "") -> str:
    return f"{_by('sum', by)}(rate(outboxd_{what}[$__rate_interval]))"


def _grown(what: str, by: str) -> str:
    return f"{_by('sum', by)}(increase(outboxd_{what}[$__rate_interval])) > 0"


def _quantile(quantile: float, what: str, by: str = "", selector: str = "$q") -> str:
    buckets = f"outboxd_{what}_bucket{{{selector}}}"
    labels = f"{by}, le" if by else "le"
    return f"histogram_quantile({quantile}, sum by ({labels}) (rate({buckets}[$__rate_interval])))"


def _same(what: str, by: str = "job, queue") -> str:
    return f"{_by('max', by)}(outboxd_{what})"


def _total(what: str, by: str = "queue") -> str:
    return f"{_by('sum', by)}(outboxd_{what})"


_FAILED = _rate('messages_processed_total{$q,outcome=~"retry|dead|poison"}')
_DELIVERED = _rate("messages_processed_total{$q}")
_VISIBLE = _same('queue_messages{$q,state="visible"}')
_DELAYED = _same('queue_messages{$q,state="delayed"}')
_OLDEST = _same("outbox_oldest_pending_age_seconds{$s}", "job, outbox")
_IN_A_CALL = f"{_rate('outbox_batch_rows_sum{$s}')} / {_rate('outbox_batch_rows_count{$s}')}"
_SLOTS = f"{_total('messages_in_progress{$q}')} / {_total('concurrency_limit{$q}')}"
_SQS_FAILED = _rate(
    'sqs_request_duration_seconds_count{$q,result!="ok"}', "queue, operation, result"
)
_LONGEST = "time() - (outboxd_oldest_in_progress_start_timestamp_seconds{$q} > 0)"
_BY_CAUSE = "handler, error_type"

ROWS: dict[str, Sequence[Panel]] = {
    "Is it well?": [
        _number("Children not ready", "count(outboxd_child_up{$s} == 0) or vector(0)"),
        _number("Oldest unpublished event", f"max({_OLDEST})", "s", 120),
        _number("Messages waiting", f"sum({_VISIBLE})", "short", 10_000),
        _number("Deliveries that fail", f"{_FAILED} / {_DELIVERED}", "percentunit", 0.05),
        _number("Dead letters", f"sum({_same('queue_dlq_messages{$q}')})"),
        _number("Dead events in the outbox", _same("outbox_dead_rows{$s}", "")),
    ],
    "From commit to effect": [
        _lines(
            "End to end",
            (_quantile(0.99, "end_to_end_latency_seconds", "handler"), "{{handler}} p99"),
            (_quantile(0.5, "end_to_end_latency_seconds", "handler"), "{{handler}} p50"),
            unit="s",
            help="From the event's commit to its effect, over all attempts.",
        ),
        _lines(
            "On the way: outbox, queue, handler (p99)",
            (_quantile(0.99, "outbox_publish_latency_seconds", "", "$s"), "commit to published"),
            (_quantile(0.99, "queue_wait_seconds", "queue"), "{{queue}} waiting"),
            (_quantile(0.99, "handler_duration_seconds", "queue"), "{{queue}} handling"),
            unit="s",
        ),
        _lines(
            "Events a second",
            (_rate("outbox_published_total{$s}"), "published"),
            (_rate("messages_received_total{$q}", "queue"), "{{queue}} received"),
            (_rate('messages_processed_total{$q,outcome="ok"}', "queue"), "{{queue}} done"),
            unit="ops",
        ),
    ],
    "Outbox": [
        _lines(
            "Backlog",
            (_same("outbox_pending_rows{$s}", "job, outbox"), "pending"),
            (_total("outbox_unsettled_rows{$s}", "job, outbox"), "accepted, not marked"),
        ),
        _lines("Age of the oldest", (_OLDEST, "{{outbox}}"), unit="s"),
        _lines(
            "Published a second",
            (_rate("outbox_published_total{$s}", "destination"), "{{destination}}"),
            unit="ops",
        ),
        _lines(
            "Destinations that are away",
            ("1 - min by (destination) (outboxd_outbox_destination_up{$s})", "{{destination}}"),
            help="1 from a failed call until the next one that works.",
        ),
        _lines(
            "Aggregates that wait",
            (_total("outbox_blocked_keys{$s}", ""), "behind a failure"),
            (_total("outbox_unrouted_keys{$s}", ""), "for a route"),
        ),
        _lines(
            "Trouble a second",
            (
                _rate("outbox_publish_failures_total{$s}", "destination, error_type"),
                "{{destination}} {{error_type}}",
            ),
            (_rate("outbox_database_failures_total{$s}", "doing"), "database: {{doing}}"),
            (_rate("outbox_ambiguous_total{$s}"), "sent again, no answer"),
            unit="ops",
        ),
        _lines(
            "Buckets by daemon", ("outboxd_outbox_buckets_owned{$s}", "{{instance}}"), help="64."
        ),
        _lines(
            "Stages of the relay, p99",
            (_quantile(0.99, "outbox_batch_duration_seconds", "stage", "$s"), "{{stage}}"),
            unit="s",
        ),
        _lines("Events in a call", (_IN_A_CALL, "mean")),
    ],
    "Queues": [
        _lines("Waiting", (_VISIBLE, "{{queue}}"), (_DELAYED, "{{queue}} delayed")),
        _lines("Slots in use", (_SLOTS, "{{queue}}"), unit="percentunit"),
        _lines("Dead letters", (_same("queue_dlq_messages{$q}"), "{{queue}}")),
        _lines(
            "Kept from receiving",
            (f"{_total('receiving_blocked{$q}', 'queue, by')} > 0", "{{queue}}: {{by}}"),
            (f"{_same('queue_paused{$q}')} > 0", "{{queue}}: by an operator"),
            help="Empty when all pools receive.",
        ),
        _lines(
            "SQS calls, p99",
            (
                _quantile(
                    0.99,
                    "sqs_request_duration_seconds",
                    "operation",
                    '$q,operation!="receive"',
                ),
                "{{operation}}",
            ),
            unit="s",
            help="Without receives, which wait for messages.",
        ),
        _lines(
            "SQS calls that failed, a second",
            (_SQS_FAILED, "{{queue}} {{operation}}: {{result}}"),
            unit="ops",
        ),
        _lines(
            "Leases",
            (_total("visibility_tracked_messages{$q}"), "{{queue}} kept"),
            (_grown("visibility_lost_total{$q}", "queue"), "{{queue}} lost"),
        ),
        _lines(
            "Time left when a lease is extended, p1",
            (_quantile(0.01, "visibility_slack_seconds", "queue"), "{{queue}}"),
            unit="s",
        ),
        _lines(
            "Repeats a second",
            (_rate("messages_redelivered_total{$q}", "queue"), "{{queue}} received again"),
            (_rate("inbox_duplicates_total{$q}", "queue"), "{{queue}} done before"),
            unit="ops",
        ),
    ],
    "Handlers": [
        _lines(
            "Outcomes a second",
            (_rate("messages_processed_total{$q}", "handler, outcome"), "{{handler}} {{outcome}}"),
            unit="ops",
        ),
        _lines(
            "Duration, p99",
            (_quantile(0.99, "handler_duration_seconds", "handler"), "{{handler}}"),
            unit="s",
        ),
        _lines(
            "Retries, by cause",
            (_grown("retries_total{$q}", _BY_CAUSE), "{{handler}} {{error_type}}"),
        ),
        _lines(
            "Dead letters, by reason",
            (_grown("dead_letters_total{$q}", "handler, reason"), "{{handler}} {{reason}}"),
        ),
        _lines("Running now", (_total("messages_in_progress{$q}", "handler"), "{{handler}}")),
        _lines("Longest call", (_LONGEST, "{{queue}}"), unit="s"),
    ],
    "Processes": [
        _lines(
            "Memory",
            ("outboxd_child_resident_memory_bytes{$s}", "{{child}}"),
            ("process_resident_memory_bytes{$s}", "supervisor"),
            unit="bytes",
        ),
        _lines(
            "CPU",
            (_rate("child_cpu_seconds_total{$s}", "instance, child"), "{{child}}"),
            ("rate(process_cpu_seconds_total{$s}[$__rate_interval])", "supervisor"),
        ),
        _lines(
            "Starts again, by reason",
            (_grown("child_restarts_total{$s}", "child, reason"), "{{child}} {{reason}}"),
        ),
        _lines(
            "Event-loop delay",
            ("outboxd_child_event_loop_lag_seconds{$s}", "{{child}}"),
            ("outboxd_supervisor_loop_lag_seconds{$s}", "supervisor"),
            unit="s",
        ),
        _lines(
            "Age of the last heartbeat",
            ("time() - outboxd_child_last_heartbeat_timestamp_seconds{$s}", "{{child}}"),
            unit="s",
        ),
        _lines("Versions", ("outboxd_build_info{$s}", ""), kind="table"),
    ],
}
