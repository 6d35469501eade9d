"""What repeats is counted, and none of it is forgotten."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.repeats import Repeats


def test_the_first_few_pass_and_the_rest_is_told_with_its_number() -> None:
    repeats: Repeats[str] = Repeats(2, window_seconds=60)

    assert [repeats.admit("down", f"down {n}", now=n) for n in range(5)] == [True] * 2 + [False] * 3
    assert repeats.admit("up", "up", now=6)
    assert repeats.next_end() == 60
    assert list(repeats.ended(59.9)) == []
    assert list(repeats.ended(60)) == [("down 4", 3)]
    assert repeats.next_end() is None
    assert repeats.admit("down", "down again", now=61), "a new minute"


def test_without_a_limit_everything_passes() -> None:
    repeats: Repeats[int] = Repeats(0)

    assert all(repeats.admit("same", n, now=0) for n in range(1000))
    assert repeats.next_end() is None


def test_many_kinds_end_the_oldest_minute_early_and_lose_nothing() -> None:
    repeats: Repeats[str] = Repeats(1, most_kinds=2)
    for kind in ("a", "a", "b", "c"):
        repeats.admit(kind, kind, now=0)

    assert list(repeats.ended(0)) == [("a", 1)]


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 30)), max_size=200),
    st.integers(0, 3),
    st.integers(1, 3),
)
def test_whatever_is_said_has_passed_or_is_counted(
    said: list[tuple[str, float]], limit: int, most_kinds: int
) -> None:
    repeats: Repeats[str] = Repeats(limit, window_seconds=60, most_kinds=most_kinds)
    told: Counter[str] = Counter()
    now = 0.0
    for kind, pause in said:
        now += pause
        for last, count in repeats.ended(now):
            told[last] += count
        told[kind] += repeats.admit(kind, kind, now)
    for last, count in repeats.all():
        told[last] += count

    assert told == Counter(kind for kind, _ in said)
