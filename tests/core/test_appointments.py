import math

from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.appointments import STALE_KEPT, Appointments


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["make", "cancel", "take"]), st.integers(0, 5), st.integers(0, 9)
        ),
        max_size=200,
    )
)
def test_keys_are_taken_when_their_latest_moment_has_come(
    history: list[tuple[str, int, int]],
) -> None:
    appointments: Appointments[int] = Appointments()
    moments: dict[int, int] = {}
    for step, key, at in history:
        match step:
            case "make":
                appointments.make(key, at)
                moments[key] = at
            case "cancel":
                appointments.cancel(key)
                moments.pop(key, None)
            case _:
                earliest = min(moments.values(), default=math.inf)
                taken = appointments.take(at)
                assert (taken is None) == (earliest > at)
                if taken is not None:
                    assert moments.pop(taken) == earliest
        assert appointments.next_at == min(moments.values(), default=math.inf)
        assert len(appointments) == len(moments)


def test_cancelled_appointments_do_not_pile_up() -> None:
    appointments: Appointments[int] = Appointments()
    for key in range(10_000):
        appointments.make(key, 40_000.0 + key)
        appointments.cancel(key)

    assert appointments.kept <= STALE_KEPT + 1
