from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.retry import Backoff


def no_luck() -> float:
    return 0.0


def test_delays_double_up_to_the_cap() -> None:
    backoff = Backoff(first_seconds=2, cap_seconds=10)

    assert [backoff.delay(n, no_luck) for n in range(1, 6)] == [2, 4, 8, 10, 10]


@given(st.integers(min_value=-5, max_value=10**9), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_within_its_jitter_of_the_cap_for_any_attempt(attempt: int, luck: float) -> None:
    backoff = Backoff(first_seconds=0.5, cap_seconds=300, jitter=0.5)

    assert 0.25 <= backoff.delay(attempt, lambda: luck) <= 300


@given(st.floats(0, 1, exclude_max=True))
def test_full_jitter_reaches_down_to_nothing(luck: float) -> None:
    assert 0 <= Backoff(jitter=1.0, first_seconds=1).delay(1, lambda: luck) <= 1
