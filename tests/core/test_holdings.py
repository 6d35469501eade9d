from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.holdings import TOLERANCE, Holdings, lacking, share
from outboxd.core.outbox import BUCKETS


def holding_all(count: int = BUCKETS) -> Holdings:
    holdings = Holdings()
    holdings.gained(dict.fromkeys(range(count), 1), deadline=10.0)
    return holdings


@given(st.integers(1, 100))
def test_shares_cover_all_buckets(relays: int) -> None:
    assert share(relays) * relays >= BUCKETS
    assert (share(relays) - 1) * relays < BUCKETS


@given(st.integers(1, 64), st.integers(0, 64))
def test_a_relay_either_claims_or_gives_up(relays: int, held: int) -> None:
    leaving = holding_all(held).to_leave(relays)

    assert not (leaving and lacking(held, relays))
    assert len(leaving) in {0, held - share(relays)}


def test_one_bucket_too_many_is_kept() -> None:
    assert holding_all(32 + TOLERANCE).to_leave(2) == []
    assert len(holding_all(32 + TOLERANCE + 1).to_leave(2)) == TOLERANCE + 1


def test_idle_buckets_are_given_up_first() -> None:
    holdings = holding_all()
    for holding in holdings:
        holding.open = 0 if holding.bucket >= 40 else 1

    assert all(holding.open == 0 for holding in holdings.to_leave(2)[:24])


def test_a_bucket_of_another_epoch_is_another_holding() -> None:
    holdings = holding_all(2)
    before = holdings.get(0)
    assert before is not None

    lost = holdings.renewed({0: 3, 1: 1}, deadline=20.0)

    assert lost == [before]
    assert before.lost
    assert not before.active
    after = holdings.get(0)
    assert after is not None
    assert after is not before
    assert after.epoch == 3
    kept = holdings.get(1)
    assert kept is not None
    assert kept.deadline == 20.0


def test_a_claim_whose_answer_was_lost_is_found_at_the_next_renewal() -> None:
    holdings = Holdings()

    assert holdings.renewed({5: 1}, deadline=20.0) == []
    assert [holding.bucket for holding in holdings.readable(0.0, 1.0)] == [5]


def test_a_lease_must_outlast_the_call() -> None:
    (holding,) = holding_all(1)

    assert holding.trusted_for(2.0, now=7.9)
    assert not holding.trusted_for(2.0, now=8.0)


def test_what_is_leaving_or_near_its_end_is_not_read() -> None:
    holdings = holding_all(3)
    for holding in holdings:
        holding.leaving = holding.bucket == 1

    assert [holding.bucket for holding in holdings.readable(0.0, 2.0)] == [0, 2]
    assert holdings.readable(9.0, 2.0) == []
