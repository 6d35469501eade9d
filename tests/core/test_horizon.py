from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.holdings import Holding
from outboxd.core.horizon import (
    GRACE_SECONDS,
    RESCAN_SECONDS,
    SAMPLES,
    Horizon,
    Pace,
    Sample,
    later_start,
)


def sample(oldest_open: int, next_id: int, last_seq: int) -> Sample:
    return Sample(oldest_open=oldest_open, next_id=next_id, last_seq=last_seq)


def test_what_was_taken_before_the_grace_has_ended_when_nothing_is_open() -> None:
    horizon = Horizon()
    horizon.sampled(sample(10, 10, 500), 0.0)

    horizon.sampled(sample(20, 20, 600), GRACE_SECONDS - 0.1)
    assert horizon.seq == 0

    horizon.sampled(sample(30, 30, 700), GRACE_SECONDS)
    assert horizon.seq == 500


def test_an_open_transaction_holds_back_whatever_was_taken_since_it_began() -> None:
    horizon = Horizon()
    horizon.sampled(sample(7, 10, 500), 0.0)
    horizon.sampled(sample(7, 90, 900), 100.0)
    assert horizon.seq == 0

    horizon.sampled(sample(91, 91, 990), 101.0)
    assert horizon.seq == 500
    horizon.sampled(sample(91, 95, 999), 105.5)
    assert horizon.seq == 900


def test_a_transaction_that_does_not_end_fills_no_memory_and_is_overcome() -> None:
    horizon = Horizon()
    for second in range(10 * SAMPLES):
        horizon.sampled(sample(1, 2 + second, second), float(second))
    assert horizon.seq == 0

    horizon.sampled(sample(10**6, 10**6, 10**6), 10.0 * SAMPLES)

    assert horizon.seq == 10 * SAMPLES - GRACE_SECONDS


def test_another_database_has_other_numbers() -> None:
    horizon = Horizon()
    horizon.sampled(sample(10, 10, 500), 0.0)
    horizon.sampled(sample(10, 10, 500), GRACE_SECONDS)

    horizon.forget()
    horizon.sampled(sample(10, 10, 3), 2 * GRACE_SECONDS)

    assert horizon.seq == 0


SEQS = st.integers(1, 10**6)


@given(SEQS, SEQS, st.none() | SEQS, st.none() | SEQS)
def test_a_read_never_begins_beyond_what_may_still_be_read(
    start: int, horizon: int, first_returned: int | None, first_moving: int | None
) -> None:
    later = later_start(start, horizon, first_returned, first_moving)

    assert later >= start
    if later > start:
        assert later <= horizon
        assert first_returned is None or later < first_returned
        assert first_moving is None or later < first_moving


def test_quick_reads_begin_at_the_first_row() -> None:
    pace, holding = Pace(lambda: 0.5), Holding(1, 1, 100.0)
    holding.start = 50

    pace.set_starts([holding], 0.0, walls=True)
    pace.read([holding], 0.01, 0.0)

    assert holding.start == 0
    assert not pace.slow
    assert not pace.wants_sample(0.0)


def test_slow_reads_begin_later_and_one_bucket_after_the_other_at_its_first_row() -> None:
    pace, buckets = Pace(lambda: 0.5), [Holding(1, 1, 100.0), Holding(2, 1, 100.0)]
    pace.read(buckets, 0.4, 0.0)
    assert pace.slow
    for holding in buckets:
        holding.start = 50

    pace.set_starts(buckets, 1.0, walls=True)
    assert [each.start for each in buckets] == [50, 50]
    pace.read(buckets, 0.01, 1.0)

    pace.set_starts(buckets, RESCAN_SECONDS, walls=True)
    assert [each.start for each in buckets] == [0, 50]
    pace.read(buckets, 0.3, RESCAN_SECONDS)

    pace.set_starts(buckets, RESCAN_SECONDS + 0.1, walls=True)
    assert buckets[1].start == 0


def test_where_nothing_is_parked_any_more_reads_begin_at_the_first_row_again() -> None:
    pace, holding = Pace(lambda: 0.5), Holding(1, 1, 100.0)
    pace.read([holding], 0.4, 0.0)
    holding.start = 50

    pace.set_starts([holding], 1.0, walls=False)

    assert holding.start == 0
    assert not pace.slow
