"""A failed head of a FIFO group is received without its followers."""

from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.narrowing import MOST_HEADS, NARROW_SECONDS, FailedHeads


def test_without_a_failed_head_receives_are_wide_and_long() -> None:
    assert FailedHeads().plan(0.0, 10, 20) == (10, 20)


def test_a_wide_receive_ends_before_the_head_comes_up_and_then_they_are_narrow() -> None:
    heads = FailedHeads()
    heads.failed("m1", visible_at=8.0)
    assert heads.plan(0.0, 10, 20) == (10, 7)
    assert heads.plan(5.0, 10, 20) == (10, 2)
    assert heads.plan(6.9, 10, 20) == (1, 20)
    assert heads.plan(12.0, 10, 20) == (1, 20)


def test_receives_stay_narrow_while_a_failed_head_is_in_hand() -> None:
    """A long poll that begins now may last until it has failed and is visible once more."""
    heads = FailedHeads()
    heads.failed("m1", visible_at=1.0)
    heads.came("m1")
    assert heads.plan(1.0, 10, 20) == (1, 20)
    assert heads.plan(60.0, 10, 20) == (1, 20)
    heads.ended("m1")
    assert heads.plan(60.0, 10, 20) == (10, 20)


def test_a_head_that_never_comes_narrows_nothing_for_ever() -> None:
    heads = FailedHeads()
    heads.failed("m1", visible_at=1.0)
    assert heads.plan(1.1 + NARROW_SECONDS, 10, 20) == (10, 20)


def test_on_a_busy_queue_every_second_receive_is_wide() -> None:
    heads = FailedHeads()
    heads.failed("m1", visible_at=0.0)
    asked = []
    for number in range(6):
        limit, _ = heads.plan(0.5, 10, 20)
        asked.append(limit)
        for other in range(limit):
            heads.came(f"other {number} {other}")
    assert asked == [1, 10, 1, 10, 1, 10]


def test_a_head_that_fails_again_is_expected_again() -> None:
    heads = FailedHeads()
    heads.failed("m1", visible_at=1.0)
    heads.came("m1")
    heads.failed("m1", visible_at=30.0)
    assert heads.plan(2.0, 10, 20) == (10, 20)
    assert heads.plan(29.5, 10, 20) == (1, 20)


def test_short_polls_are_narrow_around_the_moment_only() -> None:
    heads = FailedHeads()
    heads.failed("m1", visible_at=5.0)
    assert heads.plan(1.0, 10, 0) == (10, 0)
    assert heads.plan(4.5, 10, 0) == (1, 0)


def test_heads_without_end_are_not_remembered_without_end() -> None:
    heads = FailedHeads()
    for number in range(MOST_HEADS + 100):
        heads.failed(str(number), visible_at=1e9)
    assert len(heads._visible_at) == MOST_HEADS


@given(
    st.dictionaries(st.text(max_size=3), st.floats(0, 100), max_size=10),
    st.floats(0, 120),
    st.integers(1, 10),
    st.integers(0, 20),
)
def test_no_wide_receive_waits_into_the_moment_of_a_head(
    heads: dict[str, float], now: float, limit: int, wait: int
) -> None:
    known = FailedHeads()
    for message_id, visible_at in heads.items():
        known.failed(message_id, visible_at)
    asked, waiting = known.plan(now, limit, wait)
    assert 1 <= asked <= limit
    assert 0 <= waiting <= wait
    if asked > 1:
        awaited = [at for at in heads.values() if at >= now - NARROW_SECONDS]
        assert all(at > now + waiting for at in awaited)
