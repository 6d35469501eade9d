"""The last 15 minutes take a fixed space, and what is not known is a gap."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.channels.protocol import Sample
from outboxd.supervision.status import names
from outboxd.supervision.status.history import STEPS, History, Ring
from outboxd.supervision.status.readings import Readings, buckets_growth, growth, quantile
from outboxd.supervision.status.steps import Scope, Steps

INF = float("inf")
ORDERS = Scope(["relay"], {"orders": ["ship"]}, destinations=["sqs:a"])


@given(st.lists(st.none() | st.floats(-1e9, 1e9), max_size=3 * STEPS))
def test_a_ring_keeps_the_newest(values: list[float | None]) -> None:
    ring = Ring()
    for value in values:
        ring.add(value)

    assert list(ring.values()) == values[-STEPS:]


def test_beyond_its_cap_a_history_takes_no_new_series() -> None:
    history = History(max_series=2)
    for key in ("a", "b", "c"):
        history.add(key, 1.0)

    assert (len(history), history.values("c")) == (2, ())
    history.keep(["b"])
    history.add("c", 2.0)
    assert (history.values("a"), history.values("b"), history.values("c")) == ((), (1.0,), (2.0,))


def test_counters_grow_from_0_and_never_shrink() -> None:
    assert growth(5, None) == 5
    assert growth(3, 5) == 0
    assert growth(None, 5) is None
    assert buckets_growth({1.0: 3, INF: 4}, {1.0: 1, INF: 1}) == {1.0: 2, INF: 3}
    assert buckets_growth({2.0: 3, INF: 4}, {1.0: 9, INF: 9}) == {2.0: 3, INF: 4}


@pytest.mark.parametrize(
    ("buckets", "middle"),
    [
        (None, None),
        ({1.0: 0, INF: 0}, None),
        ({1.0: 10, INF: 10}, 0.5),
        ({1.0: 2, 3.0: 10, INF: 10}, 1.75),
        ({1.0: 0, INF: 10}, 1.0),
    ],
)
def test_a_quantile_is_that_of_prometheus(
    buckets: dict[float, float] | None, middle: float | None
) -> None:
    assert quantile(0.5, buckets) == middle


def _readings(samples: Sequence[tuple[str, dict[str, str], float]]) -> Readings:
    return Readings([Sample(*each) for each in samples], names.NAMES)


def _handled(count: float, failed: float = 0) -> Readings:
    of_it = {"queue": "orders", "handler": "ship"}
    return _readings(
        [
            (names.PROCESSED, {**of_it, "outcome": "ok"}, count),
            (names.PROCESSED, {**of_it, "outcome": "retry"}, failed + 2),
            (names.RETRIES, {**of_it, "error_type": "timeout"}, failed),
            (names.RETRIES, {**of_it, "error_type": "requested"}, 2.0),
            ("shop_sales_total", {"queue": "orders"}, 99.0),
        ]
    )


def test_rates_are_of_the_last_minute_and_totals_of_all_that_is_remembered() -> None:
    steps = Steps()
    for count in (600, *range(600, 660, 10), 660):
        steps.took(ORDERS, _handled(count), 10)

    assert steps.rate("handled", "orders") == pytest.approx(1.0)
    assert steps.total("handled", "orders") == 660
    assert steps.rates("handled", "orders")[0] == 60
    assert steps.observed_seconds == 80


def test_a_handlers_failures_are_a_share_of_what_ended() -> None:
    steps = Steps()
    steps.took(ORDERS, _readings([]), 10)
    assert steps.share(("failed", "orders", "ship"), ("ended", "orders", "ship")) is None
    steps.took(ORDERS, _handled(6, failed=2), 10)

    assert steps.share(("failed", "orders", "ship"), ("ended", "orders", "ship")) == 0.2


def test_what_nobody_has_told_is_not_known() -> None:
    steps = Steps()
    steps.took(ORDERS, _readings([]), 10)

    assert steps.values("visible", "orders") == (None,)
    assert steps.values("pending") == (None,)
    assert steps.rate("handled", "orders") is None
    assert steps.total("letters", "orders") is None
    assert steps.quantile(0.95, "latency", "orders") is None


def test_a_relay_that_has_not_counted_its_outbox_says_0_and_means_nothing() -> None:
    steps = Steps()
    outbox = {"outbox": "default"}
    steps.took(ORDERS, _readings([(names.PENDING, outbox, 0), (names.COUNTED_AT, outbox, 0)]), 10)
    steps.took(ORDERS, _readings([(names.PENDING, outbox, 7), (names.COUNTED_AT, outbox, 1e9)]), 10)

    assert steps.values("pending") == (None, 7)


def test_a_queue_that_a_reload_takes_away_is_forgotten() -> None:
    steps = Steps()
    steps.took(ORDERS, _handled(5), 10)
    steps.took(Scope([], {}, destinations=None), _handled(9), 10)

    assert len(steps.history) == 0


def test_labels_narrow_what_is_asked_for() -> None:
    readings = _readings(
        [
            (names.RETRIES, {"queue": "a", "handler": "x"}, 1),
            (names.RETRIES, {"queue": "a", "handler": "y"}, 2),
            (names.RETRIES, {"queue": "b", "handler": "x"}, 4),
        ]
    )

    assert readings.sum(names.RETRIES) == 7
    assert readings.sum(names.RETRIES, queue="a") == 3
    assert readings.sum(names.RETRIES, handler="x") == 5
    assert readings.sum(names.RETRIES, queue="a", handler="y") == 2
    assert readings.sum(names.RETRIES, queue="c") is None
