"""Marks grow old by the time in which queues were polled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outboxd.core.inbox_retention import (
    FORGOTTEN_SECONDS,
    OUTAGE_SECONDS,
    Gap,
    Polled,
    Slices,
    kept_seconds,
    purge_before,
)
from outboxd.core.inbox_rules import inbox_problems
from outboxd.core.settings import HandlerSettings, InboxSettings, QueueSettings, Settings

NOW = 1_000_000.0
DAY = 86_400.0


def queue(*gaps: tuple[float, float], polled_at: float = NOW, name: str = "orders") -> Polled:
    return Polled(name, polled_at, 18 * DAY, [Gap(*gap) for gap in gaps])


@pytest.mark.parametrize(
    ("polls", "before"),
    [
        ([], NOW - 1000),
        ([queue()], NOW - 1000),
        # The outage does not count, wherever in the window it was.
        ([queue((NOW - 500, NOW - 200))], NOW - 1300),
        ([queue((NOW - 3000, NOW - 999))], NOW - 3001),
        ([queue((NOW - 3000, NOW - 1000))], NOW - 1000),
        ([queue((NOW - 500, NOW - 400), (NOW - 900, NOW - 700))], NOW - 1300),
        # Two processes of a queue may have written down gaps that overlap.
        ([queue((NOW - 500, NOW - 300), (NOW - 600, NOW - 290))], NOW - 1310),
        # A queue that stands still now, however long, until its messages are gone.
        ([queue(polled_at=NOW - OUTAGE_SECONDS)], NOW - 1000),
        ([queue(polled_at=NOW - 5000)], NOW - 6000),
        ([queue(polled_at=NOW - FORGOTTEN_SECONDS)], NOW - 1000),
        # The queue that was polled least decides.
        ([queue(), queue((NOW - 500, NOW - 200), name="payments")], NOW - 1300),
    ],
)
def test_only_the_time_in_which_a_queue_was_polled_counts(
    polls: list[Polled], before: float
) -> None:
    assert purge_before(NOW, 1000.0, polls) == before


moments = st.integers(0, 200)


@given(st.lists(st.tuples(moments, st.integers(1, 50)), max_size=8), st.integers(1, 300))
def test_what_may_go_was_there_while_the_queue_was_polled_for_long_enough(
    outages: list[tuple[int, int]], kept: int
) -> None:
    """Compared with a count of the seconds, one by one."""
    gaps = [(NOW - 250 + start, min(NOW, NOW - 250 + start + length)) for start, length in outages]
    away = {second for start, end in gaps for second in range(int(start), int(end))}

    before = purge_before(NOW, float(kept), [queue(*gaps)])

    assert before <= NOW - kept
    polled = sum(1 for second in range(int(before), int(NOW)) if second not in away)
    assert polled == kept


def test_marks_are_kept_for_as_long_as_a_message_can_come_back() -> None:
    polls = [queue(), Polled("payments", NOW, None)]

    assert kept_seconds(28 * DAY, polls, shorter_allowed=False) == 28 * DAY
    assert kept_seconds(7 * DAY, polls, shorter_allowed=False) == 18 * DAY
    assert kept_seconds(7 * DAY, polls, shorter_allowed=True) == 7 * DAY


@given(
    st.lists(st.integers(0, 400 * 86_400), max_size=300),
    st.integers(1, 50),
    st.integers(1, 400 * 86_400),
)
def test_steps_delete_everything_that_is_old_and_nothing_else(
    rows: list[int], limit: int, before: int
) -> None:
    left = sorted(set(rows))
    slices = Slices(0.0, float(before))
    steps = 0
    while not slices.finished:
        since, until = slices.current
        doomed = [row for row in left if since <= row < until][:limit]
        left = [row for row in left if row not in doomed]
        slices.took(len(doomed), limit)
        steps += 1
        assert steps < 30_000
    assert left == [row for row in sorted(set(rows)) if row >= before]


def test_a_time_without_rows_is_crossed_in_a_few_steps() -> None:
    slices = Slices(0.0, 60 * 365 * DAY)
    steps = 0
    while not slices.finished:
        slices.took(0, 5000)
        steps += 1
    assert steps < 80


def settings(inbox: InboxSettings, mode: str = "transaction") -> Settings:
    handler = HandlerSettings(event="*", handler="shop:ship", name="ship", inbox=mode)  # type: ignore[arg-type]
    return Settings(inbox=inbox, queues={"orders": QueueSettings(handlers=(handler,))})


def test_a_retention_below_that_of_a_queue_and_its_dead_letters_is_refused() -> None:
    assert list(inbox_problems(settings(InboxSettings(retention_days=17.5)))) == [
        "[inbox] retention_days: 17.5 is below the 18 of [queues.orders] retention_days + "
        "dead_letter_retention_days, so an old dead letter that is redriven could run handlers a "
        "second time that are done with it; raise it, or set allow_shorter_retention = true and "
        "bear that"
    ]


@pytest.mark.parametrize(
    ("inbox", "mode"),
    [
        (InboxSettings(), "transaction"),
        (InboxSettings(retention_days=18), "transaction"),
        (InboxSettings(retention_days=1, allow_shorter_retention=True), "transaction"),
        (InboxSettings(retention_days=1), "off"),
    ],
)
def test_other_retentions_are_fine(inbox: InboxSettings, mode: str) -> None:
    assert list(inbox_problems(settings(inbox, mode))) == []
