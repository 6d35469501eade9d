"""`context.metrics`: what is counted, what is refused, and that neither fails a handler."""

import logging
import threading
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from outboxd import BatchContext, Context, Done, Event, NewEvent, Retry
from outboxd.adapters.metrics.snapshot import snapshot
from outboxd.adapters.metrics.user import PoolUserMetrics
from outboxd.adapters.metrics.user_rules import MAX_LABEL_SETS, MAX_METRICS, Why
from outboxd.core.errors import MetricRefused
from outboxd.ports.user_metrics import NOWHERE, UserMetrics
from outboxd.testing import run


class Scene:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics: UserMetrics = PoolUserMetrics(self.registry, "orders")

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def refused(self) -> dict[str, float]:
        counts = {
            why.value: self.value(
                "outboxd_user_metrics_refused_total", queue="orders", reason=why.value
            )
            for why in Why
        }
        return {why: count for why, count in counts.items() if count}


def test_counters_gauges_and_histograms_appear_under_the_handlers_own_names() -> None:
    scene = Scene()
    for _ in range(2):
        scene.metrics.counter("shop_parcels", "Parcels", carrier="ups", express=True).inc(2)
    scene.metrics.counter("shop_sales_total").inc()
    scene.metrics.gauge("shop_open_tills").set(4)
    scene.metrics.gauge("shop_open_tills").dec()
    scene.metrics.histogram("shop_parcel_grams", buckets=(10, 20)).observe(15)

    assert scene.value("shop_parcels_total", carrier="ups", express="True") == 4
    assert scene.value("shop_sales_total") == 1
    assert scene.value("shop_open_tills") == 3
    assert scene.value("shop_parcel_grams_bucket", le="20.0") == 1
    assert scene.refused() == {}


def test_labels_are_told_apart_by_their_text_and_not_by_their_order() -> None:
    scene = Scene()
    scene.metrics.counter("shop_a", x=1, y=2).inc()
    scene.metrics.counter("shop_a", y=2, x="1").inc()
    scene.metrics.counter("shop_a", y=2, x=True).inc()

    assert scene.value("shop_a_total", x="1", y="2") == 2
    assert scene.value("shop_a_total", x="True", y="2") == 1


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (lambda m: m.counter("outboxd_ready").inc(), "name"),
        (lambda m: m.counter("process_things").inc(), "name"),
        (lambda m: m.counter("Shop-Parcels").inc(), "name"),
        (lambda m: m.counter("x" * 101).inc(), "name"),
        (lambda m: m.counter("").inc(), "name"),
        (lambda m: m.gauge("shop_x_total").set(1), "name"),
        (lambda m: m.gauge("shop_known").set(1), "declaration"),
        (lambda m: m.counter("shop_known", other="x").inc(), "labels"),
        (lambda m: m.counter("shop_known").inc(), "labels"),
        (lambda m: m.counter("shop_known", kind="k" * 129).inc(), "labels"),
        (lambda m: m.counter("shop_known", kind="\ud800").inc(), "labels"),
        (lambda m: m.counter("shop_known", kind=None).inc(), "labels"),
        (lambda m: m.counter("shop_known", kind=["a"]).inc(), "declaration"),
        (lambda m: m.counter("shop_new", le="1").inc(), "labels"),
        (lambda m: m.counter("shop_new", **{"a-b": "1"}).inc(), "labels"),
        (lambda m: m.counter("shop_new", **{f"l{n}": "1" for n in range(11)}).inc(), "labels"),
        (lambda m: m.counter("shop_known", kind="a").inc(-1), "value"),
        (lambda m: m.counter("shop_known", kind="a").inc(float("nan")), "value"),
        (lambda m: m.counter("shop_known", kind="a").inc("7"), "value"),
        (lambda m: m.counter("shop_known", kind="a").inc(10**400), "value"),
        (lambda m: m.counter("shop_known", kind="a").set(1), "declaration"),
        (lambda m: m.counter("shop_known", kind="a").observe(1), "declaration"),
        (lambda m: m.gauge("shop_level").set(float("inf")), "value"),
        (lambda m: m.histogram("shop_h", buckets=(2, 1)).observe(1), "declaration"),
        (lambda m: m.histogram("shop_h", buckets=range(100)).observe(1), "declaration"),
        (lambda m: m.counter(7).inc(), "declaration"),
    ],
)
def test_what_cannot_be_counted_is_refused_without_an_error(
    use: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene()
    scene.metrics.counter("shop_known", kind="a").inc()

    with caplog.at_level(logging.WARNING):
        use(scene.metrics)
        use(scene.metrics)

    assert scene.refused() == {why: 2}
    assert len(caplog.records) == 1, "told once"
    assert scene.value("shop_known_total", kind="a") == 1
    msgspec.msgpack.encode(snapshot(scene.registry))  # leaves the process, whatever was tried


def test_a_histogram_of_a_known_name_with_other_buckets_is_refused() -> None:
    scene = Scene()
    scene.metrics.histogram("shop_h", buckets=(1, 2)).observe(1)
    scene.metrics.histogram("shop_h").observe(1)
    assert scene.refused() == {"declaration": 1}


def test_a_label_with_ids_is_cut_off_and_the_known_ones_go_on() -> None:
    scene = Scene()
    for number in range(MAX_LABEL_SETS + 5):
        scene.metrics.counter("shop_spent", customer=number).inc()
    scene.metrics.counter("shop_spent", customer=0).inc()

    assert scene.refused() == {"too_many": 5}
    assert scene.value("shop_spent_total", customer="0") == 2


def test_the_number_of_names_is_bounded() -> None:
    scene = Scene()
    for number in range(MAX_METRICS + 3):
        scene.metrics.gauge(f"shop_{number}").set(1)
    assert scene.refused() == {"too_many": 3}


def test_threads_that_use_a_name_first_at_once_lose_nothing() -> None:
    scene = Scene()
    start = threading.Barrier(8)

    def count() -> None:
        start.wait()
        for number in range(50):
            scene.metrics.counter("shop_n", n=number).inc()

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [scene.value("shop_n_total", n=str(number)) for number in range(50)] == [8] * 50


def test_outside_of_a_pool_metrics_go_nowhere() -> None:
    NOWHERE.counter("x").inc()
    NOWHERE.gauge("x").set(1)
    NOWHERE.gauge("x").dec()
    NOWHERE.histogram("x").observe(1)


def placed(**payload: Any) -> NewEvent:
    return NewEvent("order.placed", "order", "17", payload)


def test_a_test_of_a_handler_finds_the_metric_that_would_be_refused() -> None:
    def good(event: Event[Any], context: Context) -> None:
        context.metrics.counter("shop_orders", currency="EUR").inc()

    def bad(event: Event[Any], context: Context) -> None:
        context.metrics.counter("shop-orders").inc()

    assert run(good, placed(), inbox="off") == Done()
    outcome = run(bad, placed(), inbox="off")
    assert isinstance(outcome, Retry)
    assert "shop-orders" in str(outcome)


def test_a_handler_of_batches_has_metrics_too() -> None:
    counted: list[str] = []

    def views(events: list[Event[Any]], context: BatchContext) -> None:
        with pytest.raises(MetricRefused):
            context.metrics.gauge("shop_views", page=None).set(1)  # type: ignore[arg-type]
        context.metrics.counter("shop_views").inc(len(events))
        counted.append("shop_views")

    assert run(views, [placed(), placed()], inbox="off") == Done()
    assert counted == ["shop_views"]
