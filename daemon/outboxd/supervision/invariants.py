"""What must hold in a supervisor that does its work; where it does not, only a restart helps."""

from collections.abc import Iterable, Sequence

from outboxd.supervision.clocks import SECOND_LOOK_SECONDS
from outboxd.supervision.incarnation import DUMP_SECONDS, UNKILLABLE_SECONDS
from outboxd.supervision.life import Life

MARGIN_SECONDS = 5.0

PUT_DOWN_SECONDS = SECOND_LOOK_SECONDS + DUMP_SECONDS + UNKILLABLE_SECONDS + MARGIN_SECONDS
"""From a missed deadline to the child's end, on a busy machine."""


def broken_invariants(lives: Iterable[Life], now: float, end_at: float | None) -> Sequence[str]:
    """One line for each; `end_at` is when a stop that was ordered has to be over.

    A child that hangs is no such thing as long as it is ended for it. That it is still there long
    after its deadline says that whoever should have ended it does not work.
    """
    if end_at is not None:
        return (
            [] if now <= end_at + UNKILLABLE_SECONDS + MARGIN_SECONDS else ["the stop is overdue"]
        )
    return [
        f"{life.name} is long overdue, and still there"
        for life in lives
        if life.current is not None and now > _latest_end(life)
    ]


def _latest_end(life: Life) -> float:
    current = life.current
    assert current is not None
    if current.order.given.is_set():
        return current.order.timetable.kill_at + UNKILLABLE_SECONDS + MARGIN_SECONDS
    return life.deadlines.overdue_at(current) + PUT_DOWN_SECONDS
