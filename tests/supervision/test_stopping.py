"""Orders form a tree, and a deadline only ever moves nearer."""

from outboxd.supervision.stopping import StopOrder, Timetable

SOON, LATE = Timetable(1, 1, 2), Timetable(10, 10, 12)


def test_what_is_ordered_above_is_ordered_below() -> None:
    above = StopOrder()
    middle = above.part()
    below = middle.part()

    above.give(SOON)

    assert middle.given.is_set()
    assert below.timetable == SOON


def test_what_is_ordered_below_is_not_ordered_above() -> None:
    above = StopOrder()
    below, beside = above.part(), above.part()

    below.give(SOON)

    assert not above.given.is_set()
    assert not beside.given.is_set()


def test_of_two_orders_the_one_that_ends_first_stands() -> None:
    above = StopOrder()
    draining, quick = above.part(), above.part()
    draining.give(LATE)
    quick.give(SOON)

    above.give(Timetable(5, 5, 6))

    assert draining.timetable == Timetable(5, 5, 6)
    assert quick.timetable == SOON


def test_whoever_comes_later_is_told_what_was_ordered() -> None:
    above = StopOrder()
    above.give(LATE)
    above.hurry()

    below = above.part()

    assert below.timetable == LATE
    assert below.hurried
