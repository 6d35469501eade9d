import math

from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.lives import RestartReason
from outboxd.core.recycling import RecycleLimits, RecycleWatch, drawn
from outboxd.core.settings import RecycleSettings


def test_without_settings_no_process_is_ever_due() -> None:
    watch = RecycleWatch(drawn(RecycleSettings()))

    assert all(watch.due(10**9, 1e9, 10**15) is None for _ in range(10))


def test_each_limit_has_its_reason() -> None:
    limits = RecycleLimits(messages=100, age_seconds=60, rss_bytes=1000)

    assert RecycleWatch(limits).due(99, 59.9, 1000) is None
    assert RecycleWatch(limits).due(100, 0, 0) is RestartReason.RECYCLE_MESSAGES
    assert RecycleWatch(limits).due(0, 60, 0) is RestartReason.RECYCLE_AGE


def test_memory_counts_when_it_stays_high() -> None:
    watch = RecycleWatch(RecycleLimits(rss_bytes=1000))

    told = [watch.due(0, 0, rss) for rss in (1001, 1001, 900, 1001, 1001, 1001)]

    assert told == [None] * 5 + [RestartReason.RECYCLE_RSS]


@given(st.floats(0, 1, exclude_max=True))
def test_messages_and_age_are_jittered_by_a_tenth_and_memory_is_not(dice: float) -> None:
    settings = RecycleSettings(max_messages=1000, max_age_seconds=100, max_rss_bytes=2**30)

    limits = drawn(settings, lambda: dice)

    assert 899.99 <= limits.messages <= 1100.01
    assert 89.99 <= limits.age_seconds <= 110.01
    assert limits.rss_bytes == 2**30
    assert drawn(RecycleSettings(), lambda: dice).messages == math.inf
