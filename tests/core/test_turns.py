from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.holdings import Holding
from outboxd.core.turns import ALONE_SHARE, Turns

LIMIT_SECONDS = 5.0


def buckets(count: int) -> list[Holding]:
    return [Holding(bucket, 1, 100.0) for bucket in range(count)]


def numbers(holdings: list[Holding]) -> list[int]:
    return [each.bucket for each in holdings]


class Database:
    """Cuts reads off that ask for one of the `slow` buckets."""

    def __init__(self, slow: set[int]) -> None:
        self.slow = slow
        self.answered: list[list[int]] = []
        self.cut_off: list[list[int]] = []

    def read(self, turns: Turns, ours: list[Holding], now: float) -> bool:
        holdings = turns.next(ours, now)
        if not holdings:
            return False
        if self.slow & set(numbers(holdings)):
            turns.cut_off(holdings, LIMIT_SECONDS, now)
            self.cut_off.append(numbers(holdings))
        else:
            turns.read(holdings, len(ours))
            self.answered.append(numbers(holdings))
        return True


def test_all_buckets_are_read_at_once_as_long_as_none_takes_too_long() -> None:
    turns, ours, database = Turns(), buckets(8), Database(set())

    for second in range(3):
        database.read(turns, ours, float(second))

    assert database.answered == [list(range(8))] * 3
    assert not turns.partial


@given(st.integers(1, 64), st.data())
def test_what_takes_too_long_keeps_no_other_bucket_unread(count: int, data: st.DataObject) -> None:
    slow = data.draw(st.sets(st.integers(0, count - 1), max_size=3))
    turns, ours, database = Turns(), buckets(count), Database(slow)

    for _ in range(40 + 2 * count):
        database.read(turns, ours, 0.0)

    quick = [bucket for bucket in range(count) if bucket not in slow]
    assert len(database.cut_off) <= 10 * len(slow)
    if quick:
        assert not turns.partial
        assert sorted(database.answered[-1]) == quick


def test_a_bucket_that_takes_too_long_alone_is_tried_again_alone_after_a_rest() -> None:
    turns, ours, database = Turns(), buckets(2), Database({1})
    for _ in range(4):
        database.read(turns, ours, 0.0)
    assert database.cut_off == [[0, 1], [1]]
    rested = ALONE_SHARE * LIMIT_SECONDS

    database.read(turns, ours, rested - 1)
    assert database.answered[-1] == [0]
    database.read(turns, ours, rested)
    assert database.cut_off[-1] == [1]

    database.slow.clear()
    database.read(turns, ours, 2 * rested)
    database.read(turns, ours, 2 * rested)
    assert [sorted(each) for each in database.answered[-2:]] == [[1], [0, 1]]


def test_a_bucket_that_was_lost_and_won_again_is_read_as_any_other() -> None:
    turns, ours, database = Turns(), buckets(1), Database({0})
    database.read(turns, ours, 0.0)
    assert turns.next(ours, 1.0) == []

    ours = buckets(1)

    assert turns.next(ours, 1.0) == ours
