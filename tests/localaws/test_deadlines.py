"""Deadlines and recent entries against the obvious, slow implementations."""

from hypothesis import given
from hypothesis import strategies as st

from outboxd.localaws.deadlines import Deadlines
from outboxd.localaws.recent import Recent

keys = st.integers(0, 5)
times = st.integers(0, 20).map(float)
steps = st.one_of(
    st.tuples(st.just("set"), keys, times),
    st.tuples(st.just("cancel"), keys, st.just(0.0)),
    st.tuples(st.just("due"), st.just(0), times),
)


@given(st.lists(steps, max_size=200))
def test_due_keys_come_earliest_first_and_once(script: list[tuple[str, int, float]]) -> None:
    deadlines: Deadlines[int] = Deadlines()
    plain: dict[int, float] = {}
    for step, key, when in script:
        if step == "set":
            deadlines.set(key, when)
            plain.pop(key, None)
            plain[key] = when
        elif step == "cancel":
            deadlines.cancel(key)
            plain.pop(key, None)
        else:
            expected = sorted((k for k in plain if plain[k] <= when), key=lambda k: plain[k])
            assert list(deadlines.due(when)) == expected
            for k in expected:
                del plain[k]
        assert deadlines.earliest() == min(plain.values(), default=None)
        assert len(deadlines) == len(plain)


def test_cancelled_and_renewed_deadlines_do_not_pile_up() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for serial in range(10_000):
        deadlines.set(serial, 43_200.0)
        deadlines.set(serial, 43_200.0 + serial)
        deadlines.cancel(serial)

    assert len(deadlines._heap) < 100


def test_an_entry_is_forgotten_after_its_time_and_a_new_put_starts_it_again() -> None:
    recent: Recent[str, int] = Recent(300)
    recent.put("a", 1, now=0)
    recent.put("b", 2, now=100)
    recent.put("a", 3, now=200)

    assert recent.get("a", now=499) == 3
    assert recent.get("b", now=400) is None
    assert recent.get("a", now=500) is None
    assert len(recent) == 0
