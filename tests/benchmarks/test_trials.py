from pathlib import Path

import pytest

from benchmarks.figures import Figures, Row
from benchmarks.plain_table import plain
from benchmarks.targets import judged
from benchmarks.trials import idling, latency, recovery, relaying, scale
from benchmarks.trials.latency import percentile
from benchmarks.trials.notes import BEGAN, ENDED, Handled, Note, handled_after, notes
from benchmarks.trials.rounds import beside


def handled(number: int, began: float, ended: float) -> list[Note]:
    return [Note(BEGAN, number, began), Note(ENDED, number, ended)]


def test_what_was_handled_one_after_another_was_attended_all_the_time() -> None:
    noted = [*handled(1, 12.0, 15.0), *handled(2, 15.0, 18.0)]

    assert handled_after(noted, 10.0, {1, 2}) == Handled(2.0, 8.0, 2.0)


def test_handlers_that_overlap_are_attended_once() -> None:
    noted = [*handled(1, 11.0, 14.0), *handled(2, 12.0, 13.0), *handled(3, 15.5, 16.0)]

    assert handled_after(noted, 10.0, {1, 2, 3}) == Handled(1.0, 6.0, 2.5)


def test_what_was_in_hand_before_does_not_count_and_is_waited_for() -> None:
    before = [Note(BEGAN, 1, 9.0), Note(BEGAN, 2, 9.5)]

    assert handled_after([*before, *handled(1, 11.0, 12.0)], 10.0, {1, 2}) is None


def test_an_attempt_that_was_cut_short_is_not_the_one_that_ended() -> None:
    noted = [Note(BEGAN, 1, 11.0), *handled(1, 13.0, 14.0)]

    assert handled_after(noted, 10.0, {1}) == Handled(3.0, 4.0, 3.0)


def test_a_note_that_is_being_written_is_none_yet(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    assert notes(path) == []

    path.write_text("began 1 2.5\nended 1 2.")

    assert notes(path) == [Note(BEGAN, 1, 2.5)]


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 50), (99, 99), (100, 100)])
def test_a_percentile_is_a_value_that_was_measured(percent: float, value: float) -> None:
    assert percentile(range(1, 101), percent) == value


def test_rounds_of_different_benchmarks_stand_side_by_side() -> None:
    one: Figures = {"a": 1.0}

    assert beside([{("x", "s"): one}, {("x", "s"): one}], [{("y", "s"): one}]) == [
        {("x", "s"): one, ("y", "s"): one},
        {("x", "s"): one},
    ]


def test_the_backlog_is_judged_by_what_relay_and_database_need_together() -> None:
    def cost(relay: float, database: float) -> Figures:
        return {relaying.RELAY_CPU: relay, relaying.DATABASE_CPU: database}

    (target,) = judged(
        [
            {
                (scale.BACKLOG, scale.backlog_name(1_000)): cost(80, 20),
                (scale.BACKLOG, scale.backlog_name(1_000_000)): cost(80, 120),
            }
        ]
    )

    assert (target.wanted, target.got, target.met) == ("<= 1.2", 2.0, False)


def test_the_other_trials_are_judged_as_well() -> None:
    targets = judged(
        [
            {
                (latency.NAME, latency.WITH_WAKE_UP): {latency.HALF: 41.0, latency.MOST: 149.0},
                (recovery.NAME, recovery.OUTBOXD): {
                    recovery.UNATTENDED: 1.0,
                    recovery.ALL_AGAIN: 7.0,
                },
                (scale.QUEUES, scale.queues_name(10)): {idling.IDLE_CPU: 1.0},
            }
        ]
    )

    assert [(target.got, target.met) for target in targets] == [
        (41.0, False),
        (149.0, True),
        (1.0, True),
        (4.0, True),
        (1.0, True),
    ]


def test_a_table_of_its_own_metrics_has_a_column_for_each() -> None:
    rows = {
        ("one", "s to the first again"): Row("b", "one", "s to the first again", 1.234, 0.5),
        ("two", "files"): Row("b", "two", "files", 12.0, 0.0),
    }

    head, names, _, one, two = plain("b", rows)

    assert head.split() == ["s", "to", "the", "first"]
    assert names.split() == ["b", "again", "files"]
    assert one.split() == ["one", "1.23", "(0.50)"]
    assert two.split() == ["two", "12.0"]
