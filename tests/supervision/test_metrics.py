import logging
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Enum, Gauge, Histogram, Summary
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from outboxd.adapters.metrics.exposition import Exposition
from outboxd.adapters.metrics.snapshot import LEFT_OUT, snapshot
from outboxd.adapters.metrics.supervisor import SupervisorMetrics
from outboxd.channels.protocol import Address, Family, Heartbeat, MetricsSnapshot, Sample
from outboxd.core.children import Kind
from outboxd.core.lives import ReloadResult, RestartReason, State
from outboxd.supervision.metrics import DROPPED, LAST_SNAPSHOT, MetricsBook
from outboxd.supervision.observing import SupervisorObserver

ORDERS = "consumer:orders/1"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Child:
    """One incarnation with its own registry, as a child process has one."""

    def __init__(self, incarnation: int, name: str = ORDERS) -> None:
        self.address = Address(name, incarnation)
        self.registry = CollectorRegistry()
        self.handled = Counter("outboxd_handled", "Handled", ["queue"], registry=self.registry)
        self.seconds = Histogram(
            "outboxd_seconds", "Duration", ["queue"], buckets=(0.1, 1), registry=self.registry
        )
        self.running = Gauge("outboxd_running", "Running", ["queue"], registry=self.registry)
        self._sequence = 0

    def report_to(self, book: MetricsBook) -> MetricsSnapshot:
        self._sequence += 1
        frame = MetricsSnapshot(self._sequence, snapshot(self.registry))
        book.took(self.address, frame)
        return frame


def a_gauge(name: str, *values: tuple[dict[str, str], float]) -> Family:
    return Family(name, "gauge", "help", tuple(Sample(name, labels, v) for labels, v in values))


def value(families: Iterable[Family], name: str, **labels: str) -> float | None:
    """The value of one line; None if there is no such line."""
    lines = [s for f in families for s in f.samples if s.name == name and s.labels == labels]
    assert len(lines) <= 1, f"{name} appears twice"
    return lines[0].value if lines else None


def test_a_counter_goes_on_over_a_restart_of_its_child() -> None:
    book = MetricsBook()
    first = Child(1)
    first.handled.labels("orders").inc(5)
    first.report_to(book)
    book.retire(first.address)
    second = Child(2)
    second.handled.labels("orders").inc(2)
    second.report_to(book)
    neighbour = Child(1, "consumer:orders/2")
    neighbour.handled.labels("orders").inc(1)
    neighbour.report_to(book)

    body, _ = Exposition(CollectorRegistry(), book.families).render("")

    [handled] = [m for m in parse_text(body.decode()) if m.name == "outboxd_handled"]
    assert [(s.name, s.labels, s.value) for s in handled.samples] == [
        ("outboxd_handled_total", {"queue": "orders"}, 8.0)  # 5 + 2 + 1
    ]


def test_histograms_of_the_dead_stay_and_their_gauges_go() -> None:
    book = MetricsBook()
    child = Child(1)
    child.seconds.labels("orders").observe(0.05)
    child.running.labels("orders").set(3)
    child.report_to(book)

    book.retire(child.address)

    families = book.families()
    assert value(families, "outboxd_seconds_bucket", queue="orders", le="0.1") == 1
    assert value(families, "outboxd_seconds_count", queue="orders") == 1
    assert value(families, "outboxd_running", queue="orders") is None


def test_gauges_of_the_living_are_added_up() -> None:
    book = MetricsBook()
    for incarnation, running in ((1, 3), (2, 4)):  # an old and a new one, during a reload
        child = Child(incarnation)
        child.running.labels("orders").set(running)
        child.report_to(book)

    assert value(book.families(), "outboxd_running", queue="orders") == 7


@pytest.mark.parametrize(
    ("name", "values", "exported"),
    [
        ("outboxd_outbox_pending_rows", (7, 9), 9),
        ("outboxd_queue_messages", (7, 9), 9),
        ("outboxd_queue_dlq_messages", (7, 9), 9),
        ("outboxd_last_receive_success_timestamp_seconds", (7, 9), 9),
        ("outboxd_outbox_oldest_pending_age_seconds", (7, 9), 9),
        ("outboxd_oldest_in_progress_start_timestamp_seconds", (7, 9), 7),
        ("outboxd_oldest_in_progress_start_timestamp_seconds", (0, 9), 9),
        ("outboxd_oldest_in_progress_start_timestamp_seconds", (0, 0), 0),
        ("outboxd_messages_in_progress", (7, 9), 16),
        ("outboxd_outbox_buckets_owned", (24, 40), 64),
        ("outboxd_outbox_destination_up", (0, 1), 0),
        ("outboxd_inbox_kept_seconds", (7, 9), 9),
    ],
)
def test_gauges_of_what_several_processes_see_are_not_added_up(
    name: str, values: tuple[float, float], exported: float
) -> None:
    book = MetricsBook()
    for number, seen in enumerate(values):
        book.took(Address(ORDERS, number), MetricsSnapshot(1, (a_gauge(name, ({}, seen)),)))

    assert value(book.families(), name) == exported


def test_an_old_snapshot_and_one_of_a_dead_incarnation_change_nothing() -> None:
    book = MetricsBook()
    child = Child(1)
    child.handled.labels("orders").inc(5)
    early = child.report_to(book)
    child.handled.labels("orders").inc(5)
    late = child.report_to(book)

    book.took(child.address, early)
    assert value(book.families(), "outboxd_handled_total", queue="orders") == 10
    book.retire(child.address)
    book.took(child.address, late)
    book.retire(child.address)
    assert value(book.families(), "outboxd_handled_total", queue="orders") == 10


def test_a_label_with_too_many_values_is_cut_off_and_counted() -> None:
    book = MetricsBook(label_sets=3)
    ids = [f"customer-{n}" for n in range(5)]
    family = a_gauge("shop_spent", *(({"customer": id_}, 1.0) for id_ in ids))

    book.took(Address(ORDERS, 1), MetricsSnapshot(1, (family,)))

    families = book.families()
    [spent] = [f for f in families if f.name == "shop_spent"]
    assert [s.labels["customer"] for s in spent.samples] == ids[:3]
    assert value(families, f"{DROPPED}_total", child=ORDERS) == 2


def test_the_freshness_of_a_child_is_exported() -> None:
    book = MetricsBook(wall_clock=lambda: 1234.5)
    Child(1).report_to(book)

    assert value(book.families(), LAST_SNAPSHOT, child=ORDERS) == 1234.5


@pytest.mark.parametrize(
    "family",
    [
        Family("outboxd_handled", "gauge", "", (Sample("outboxd_handled", {}, 1),)),
        Family("outboxd_ready", "gauge", "", (Sample("outboxd_ready", {}, 1),)),
        Family("outboxd_ready_total", "gauge", "", (Sample("outboxd_ready_total", {}, 1),)),
        Family("outboxd_handled_total", "gauge", "", (Sample("outboxd_handled_total", {}, 1),)),
        Family("with space", "gauge", "", (Sample("with space", {}, 1),)),
        Family("odd", "stateset", "", (Sample("odd", {}, 1),)),
    ],
    ids=[
        "another type",
        "the supervisor's own",
        "a line of the supervisor's own",
        "a line of another's",
        "no name",
        "unknown type",
    ],
)
def test_a_family_that_would_break_the_scrape_is_refused_and_told_once(
    family: Family, caplog: pytest.LogCaptureFixture
) -> None:
    book = MetricsBook(reserved={"outboxd_ready", "outboxd_ready_total"})
    child = Child(1)
    child.handled.labels("orders").inc()
    child.report_to(book)

    with caplog.at_level(logging.WARNING):
        for sequence in (1, 2):
            book.took(Address("relay", 1), MetricsSnapshot(sequence, (family,)))

    assert [f for f in book.families() if f.samples and f.samples[0] == family.samples[0]] == []
    assert len(caplog.records) == 1


def cut_otherwise(incarnation: int, bound: float) -> Child:
    child = Child(incarnation)
    cut = Histogram("shop_grams", "Weight", buckets=(bound,), registry=child.registry)
    cut.observe(1)
    return child


def test_a_histogram_that_new_code_cuts_otherwise_begins_anew() -> None:
    book = MetricsBook()
    old = cut_otherwise(1, 10)
    old.report_to(book)
    book.retire(old.address)
    assert value(book.families(), "shop_grams_bucket", le="10.0") == 1

    cut_otherwise(2, 20).report_to(book)

    families = book.families()
    assert value(families, "shop_grams_bucket", le="10.0") is None
    assert value(families, "shop_grams_bucket", le="20.0") == 1
    assert value(families, "shop_grams_count") == 1


def test_a_histogram_that_is_cut_as_before_goes_on() -> None:
    book = MetricsBook()
    for incarnation in (1, 2):
        child = cut_otherwise(incarnation, 10)
        child.report_to(book)
        book.retire(child.address)

    assert value(book.families(), "shop_grams_bucket", le="10.0") == 2


def test_a_slot_that_is_gone_for_good_is_not_expected_to_be_fresh() -> None:
    book = MetricsBook()
    child = Child(1)
    child.report_to(book)
    book.retire(child.address)

    book.forget(ORDERS)

    assert value(book.families(), LAST_SNAPSHOT, child=ORDERS) is None


def test_samples_that_a_scraper_would_choke_on_are_left_out() -> None:
    bad = Family(
        "shop_sales",
        "counter",
        "",
        (
            Sample("shop_sales_total", {"kind": "good"}, 1.0),
            Sample("shop_sales_total", {"kind": "nan"}, float("nan")),
            Sample("shop_sales_total", {"no-label": "x"}, 1.0),
            Sample("another_total", {}, 1.0),
        ),
    )
    book = MetricsBook()
    book.took(Address(ORDERS, 1), MetricsSnapshot(1, (bad,)))

    [sales] = [f for f in book.families() if f.name == "shop_sales"]
    assert [s.labels for s in sales.samples] == [{"kind": "good"}]


def test_a_snapshot_has_no_creation_times_and_knows_three_types_only() -> None:
    registry = CollectorRegistry()
    Counter("a", "A", registry=registry).inc()
    Summary("b", "B", registry=registry).observe(2)
    Enum("c", "C", states=["on", "off"], registry=registry)

    families = snapshot(registry)

    assert {f.type for f in families} <= {"counter", "gauge", "histogram"}
    names = {s.name for f in families for s in f.samples}
    assert names == {"a_total", "b_count", "b_sum", "c", LEFT_OUT}


def test_a_snapshot_beyond_its_budget_leaves_out_the_largest_and_says_so() -> None:
    registry = CollectorRegistry()
    Counter("small", "Small", registry=registry).inc()
    large = Gauge("large", "Large", ["customer"], registry=registry)
    for number in range(1_000):
        large.labels(f"customer-{number}").set(1)

    families = snapshot(registry, budget_bytes=10_000)

    assert [f.name for f in families] == ["small", LEFT_OUT]
    assert value(families, LEFT_OUT) == 1
    assert len(msgspec.msgpack.encode(families)) < 10_000


def observed(metrics: SupervisorObserver) -> None:
    """One child's life: ready, killed, waiting to be started again."""
    metrics.child_state(ORDERS, Kind.CONSUMER, State.STARTING)
    metrics.child_started(ORDERS)
    metrics.child_ready(ORDERS, 0.25)
    metrics.child_state(ORDERS, Kind.CONSUMER, State.READY)
    metrics.ready(True)
    metrics.heartbeat(ORDERS, Heartbeat(0.01, 2, 1.0, 2.0, 50_000_000, 1.5, 12, 7))
    metrics.heartbeat(ORDERS, Heartbeat(0.02, 2, 1.0, 2.0, 60_000_000, 2.0, 13, 8))
    metrics.child_ended(ORDERS, -9, RestartReason.SIGNAL)
    metrics.child_state(ORDERS, Kind.CONSUMER, State.BACKOFF)
    metrics.child_backoff(ORDERS, 0.7)
    metrics.ready(False)
    metrics.child_started(ORDERS)
    metrics.heartbeat(ORDERS, Heartbeat(0.0, 0, None, None, 40_000_000, 0.5, 12, 7))
    metrics.loop_lag(0.4)
    metrics.loop_lag(0.1)
    metrics.frame_passed(ORDERS, "to_child")
    metrics.frames_queued(ORDERS, 3)
    metrics.frame_dropped(ORDERS, "from_child")
    metrics.queue_paused("orders", True)
    metrics.stopping()


@pytest.mark.parametrize("accept", ["", "text/plain; version=0.0.4", OPENMETRICS])
def test_the_supervisors_metrics_and_the_childrens_are_one_readable_exposition(
    accept: str,
) -> None:
    own = SupervisorMetrics([(ORDERS, Kind.CONSUMER)], wall_clock=lambda: 1000.0)
    observed(own)
    book = MetricsBook(reserved=own.family_names())
    child = Child(1)
    child.handled.labels('or"d\\ers\n').inc(5)
    child.seconds.labels("orders").observe(0.5)
    child.seconds.labels("mails").observe(0.5)
    child.report_to(book)

    body, content_type = Exposition(own.registry, book.families).render(accept)

    openmetrics = "openmetrics" in content_type
    assert openmetrics == (accept == OPENMETRICS)
    parse = parse_openmetrics if openmetrics else parse_text
    metrics = list(parse(body.decode()))
    names = [metric.name for metric in metrics]
    assert len(names) == len(set(names)), "each family appears once"
    lines = {
        (s.name, *sorted(s.labels.items())): s.value for metric in metrics for s in metric.samples
    }
    of_child = ("child", ORDERS)
    assert lines["outboxd_child_state", of_child, ("state", "backoff")] == 1
    assert lines["outboxd_child_state", of_child, ("state", "ready")] == 0
    assert lines["outboxd_child_up", of_child, ("kind", "consumer")] == 0
    assert lines["outboxd_child_starts_total", of_child] == 2
    assert lines["outboxd_child_restarts_total", of_child, ("reason", "signal")] == 1
    assert lines["outboxd_child_restarts_total", of_child, ("reason", "crash")] == 0
    assert lines["outboxd_child_last_exit_code", of_child] == -9
    assert lines["outboxd_child_cpu_seconds_total", of_child] == 2.5
    assert lines["outboxd_child_resident_memory_bytes", of_child] == 40_000_000
    assert lines["outboxd_child_start_time_seconds", of_child] == 1000
    assert lines["outboxd_queue_paused", ("queue", "orders")] == 1
    assert lines["outboxd_supervisor_loop_lag_seconds",] == 0.4
    assert lines["outboxd_ready",] == 0
    assert lines["outboxd_shutdown_in_progress",] == 1
    assert lines["outboxd_handled_total", ("queue", 'or"d\\ers\n')] == 5


def test_a_pause_and_every_reason_of_a_restart_are_there_before_they_happen() -> None:
    own = SupervisorMetrics([(ORDERS, Kind.CONSUMER), ("relay", Kind.RELAY)])

    value = own.registry.get_sample_value
    assert value("outboxd_queue_paused", {"queue": "orders"}) == 0
    assert value("outboxd_queue_paused", {"queue": ""}) is None, "the relay has no queue"
    for reason in RestartReason:
        labels = {"child": ORDERS, "reason": reason.value}
        assert value("outboxd_child_restarts_total", labels) == 0

    own.queue_paused("orders", True)
    own.queue_paused("orders", False)
    assert value("outboxd_queue_paused", {"queue": "orders"}) == 0


steps = st.lists(
    st.tuples(st.sampled_from(["count", "report", "restart"]), st.integers(0, 2)), max_size=60
)


@given(steps)
def test_exported_counters_never_go_backwards_and_lose_no_reported_count(
    history: list[tuple[str, int]],
) -> None:
    book = MetricsBook()
    counts = [0, 0, 0]  # what the current incarnation of each slot has counted
    reported = [0, 0, 0]
    incarnations = [1, 1, 1]
    retired = 0
    exported = 0.0
    for sequence, (step, slot) in enumerate(history):
        address = Address(f"consumer:orders/{slot}", incarnations[slot])
        match step:
            case "count":
                counts[slot] += 1
            case "report":
                line = Sample("outboxd_handled_total", {}, counts[slot])
                family = Family("outboxd_handled", "counter", "", (line,))
                book.took(address, MetricsSnapshot(sequence, (family,)))
                reported[slot] = counts[slot]
            case _:
                book.retire(address)
                retired += reported[slot]
                counts[slot] = reported[slot] = 0
                incarnations[slot] += 1
        now = value(book.families(), "outboxd_handled_total") or 0.0
        assert now == retired + sum(reported)
        assert now >= exported
        exported = now


def test_a_slot_that_a_reload_takes_away_leaves_its_counters_alone() -> None:
    own = SupervisorMetrics([("relay", Kind.RELAY)])
    own.child_added(ORDERS, Kind.CONSUMER)
    own.child_started(ORDERS)

    own.queue_paused("orders", True)
    own.child_removed(ORDERS, Kind.CONSUMER)

    lines = [s for metric in own.registry.collect() for s in metric.samples]
    left = {s.name for s in lines if s.labels.get("child") == ORDERS}
    assert all(name.endswith(("_total", "_created")) for name in left)
    assert own.registry.get_sample_value("outboxd_queue_paused", {"queue": "orders"}) is None
    assert own.registry.get_sample_value("outboxd_child_starts_total", {"child": ORDERS}) == 1
    assert (
        own.registry.get_sample_value("outboxd_child_up", {"child": "relay", "kind": "relay"}) == 0
    )


def test_reloads_are_counted_and_the_last_one_is_remembered() -> None:
    now = [100.0]
    own = SupervisorMetrics([], wall_clock=lambda: now[0])

    def told() -> tuple[float | None, ...]:
        names = ("successful", "success_timestamp_seconds")
        return tuple(
            own.registry.get_sample_value(f"outboxd_config_last_reload_{name}") for name in names
        )

    assert told() == (1, 100)
    now[0] = 200.0
    own.reloaded(ReloadResult.INVALID)
    assert told() == (0, 100)
    own.reloaded(ReloadResult.OK)
    assert told() == (1, 200)
    for result, count in ((ReloadResult.INVALID, 1), (ReloadResult.ABORTED, 0)):
        labels = {"result": result.value}
        assert own.registry.get_sample_value("outboxd_config_reloads_total", labels) == count
