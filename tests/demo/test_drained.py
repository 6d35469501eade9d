"""When the demo believes that nothing moves any more."""

from hypothesis import given
from hypothesis import strategies as st

from outboxd.demo.drained import DrainWatch

LOOKS = st.lists(
    st.tuples(st.floats(min_value=0.01, max_value=3), st.booleans()), min_size=1, max_size=30
)


def test_one_quiet_look_is_not_enough() -> None:
    assert DrainWatch().look(100.0, quiet=True) is False


def test_two_quiet_looks_two_seconds_apart_are() -> None:
    watch = DrainWatch()
    watch.look(100.0, quiet=True)

    assert watch.look(101.9, quiet=True) is False
    assert watch.look(102.0, quiet=True) is True


def test_a_movement_in_between_starts_the_wait_again() -> None:
    watch = DrainWatch()
    watch.look(100.0, quiet=True)
    watch.look(101.0, quiet=False)
    watch.look(101.5, quiet=True)

    assert watch.look(102.5, quiet=True) is False
    assert watch.look(103.5, quiet=True) is True


@given(LOOKS)
def test_drained_means_that_every_look_of_the_last_two_seconds_was_quiet(
    looks: list[tuple[float, bool]],
) -> None:
    watch, now, history = DrainWatch(), 0.0, list[tuple[float, bool]]()
    for step, quiet in looks:
        now += step
        history.append((now, quiet))
        recent = [was_quiet for at, was_quiet in history if at >= now - 2.0]
        old_enough = any(was_quiet and at <= now - 2.0 for at, was_quiet in history)

        if watch.look(now, quiet=quiet):
            assert all(recent)
            assert old_enough
