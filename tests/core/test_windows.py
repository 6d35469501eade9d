import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.holdings import Holding
from outboxd.core.windows import (
    EVERYTHING,
    FIRST_WINDOW,
    LAST_SEQ,
    MEMORY_OF_A_CUT_SECONDS,
    RESCAN_SECONDS,
    Window,
    Windows,
    later_start,
)

SEQS = st.integers(1, 10**6)


def holding(bucket: int, start: int = 0) -> Holding:
    made = Holding(bucket, 1, 100.0)
    made.start = start
    return made


@pytest.fixture
def windows() -> Windows:
    return Windows(lambda: 0.5)


@given(st.integers(0, 10**6), SEQS, SEQS, st.none() | SEQS, st.none() | SEQS)
def test_a_read_never_begins_beyond_what_may_still_be_read(
    after: int, size: int, horizon: int, first_returned: int | None, first_moving: int | None
) -> None:
    window = Window(after, after + size)

    later = later_start(window, horizon, first_returned, first_moving)

    assert later >= after
    if later > after:
        assert later <= min(horizon, window.up_to)
        assert first_returned is None or later < first_returned
        assert first_moving is None or later < first_moving


def test_quick_reads_look_at_everything(windows: Windows) -> None:
    one = holding(1, start=50)

    assert windows.open([one], 1000, 0.0, walls=True) == {1: EVERYTHING}
    windows.read([one], 1000, 0.01, 0.0)

    assert one.start == 0
    assert not windows.slow


def test_slow_reads_begin_later_and_one_bucket_after_the_other_at_its_first_row(
    windows: Windows,
) -> None:
    buckets = [holding(1), holding(2)]
    windows.read(buckets, 100, 0.4, 0.0)
    assert windows.slow
    for each in buckets:
        each.start = 50

    assert windows.open(buckets, 100, 1.0, walls=True) == {1: Window(50), 2: Window(50)}
    windows.read(buckets, 100, 0.01, 1.0)

    assert windows.open(buckets, 100, RESCAN_SECONDS, walls=True) == {1: Window(0), 2: Window(50)}
    windows.read(buckets, 100, 0.3, RESCAN_SECONDS)

    windows.open(buckets, 100, RESCAN_SECONDS + 0.1, walls=True)
    assert buckets[1].start == 0


def test_where_nothing_is_parked_any_more_reads_look_at_everything_again(windows: Windows) -> None:
    one = holding(1)
    windows.read([one], 0, 0.4, 0.0)
    one.start = 50

    assert windows.open([one], 100, 1.0, walls=False) == {1: EVERYTHING}
    assert one.start == 0
    assert not windows.slow


def test_up_to_the_horizon_a_slow_bucket_is_read_in_windows_and_beyond_it_at_once(
    windows: Windows,
) -> None:
    one = holding(1)
    windows.read([one], 0, 0.15, 0.0)
    one.rescan_at = 3600.0
    horizon = 2 * FIRST_WINDOW

    (first,) = windows.open([one], horizon, 1.0, walls=True).values()
    assert first == Window(0, FIRST_WINDOW)
    assert first.ends
    one.start = first.up_to
    (last,) = windows.open([one], horizon, 1.0, walls=True).values()
    assert last == Window(FIRST_WINDOW, LAST_SEQ)
    assert not last.ends


def test_windows_fit_the_time_that_they_take(windows: Windows) -> None:
    one = holding(1)

    def size() -> int:
        one.start, one.rescan_at = 0, 3600.0
        return windows.open([one], 10**12, 1.0, walls=True)[1].up_to

    windows.read([one], 0, 0.15, 0.0)
    assert size() == FIRST_WINDOW
    windows.read([one], 10**12, 0.5, 0.0)
    assert size() == FIRST_WINDOW // 2
    windows.read([one], 10**12, 0.01, 0.0)
    assert size() == FIRST_WINDOW
    windows.cut_off([one], 5.0, 0.0)
    assert size() == FIRST_WINDOW // 4


def test_a_read_that_was_cut_off_is_not_asked_for_again_even_if_nothing_is_parked(
    windows: Windows,
) -> None:
    one = holding(1)
    windows.cut_off([one], 5.0, 0.0)
    one.start, one.rescan_at = 50, 3600.0

    assert windows.open([one], 100, MEMORY_OF_A_CUT_SECONDS - 1, walls=False) == {1: Window(50)}
    assert windows.open([one], 100, MEMORY_OF_A_CUT_SECONDS, walls=False) == {1: EVERYTHING}
