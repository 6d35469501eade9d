"""At most so many per second."""

from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.rate import BURST_SECONDS, Rate


@given(
    per_second=st.floats(0.1, 10_000),
    steps=st.lists(st.tuples(st.floats(0, 5), st.integers(1, 10)), max_size=60),
)
def test_no_more_than_the_rate_and_one_burst_is_ever_allowed(
    per_second: float, steps: list[tuple[float, int]]
) -> None:
    rate = Rate(per_second, now=0.0)
    now = 0.0
    taken = 0
    for pause, wanted in steps:
        now += pause
        count = min(wanted, rate.available(now))
        rate.take(count, now)
        taken += count
        assert taken <= now * per_second + max(1.0, per_second * BURST_SECONDS) + 1e-6


def test_waiting_as_long_as_it_says_allows_one_more() -> None:
    rate = Rate(4, now=10.0)
    rate.take(1, 10.0)
    assert rate.available(10.0) == 0
    assert rate.seconds_until_one(10.0) == 0.25
    assert rate.available(10.25) == 1
    assert rate.seconds_until_one(10.25) == 0.0


def test_a_long_pause_is_not_made_up_for() -> None:
    rate = Rate(100, now=0.0)
    assert rate.available(3600.0) == 10
