"""What counts as a run that went well."""

from typing import Any

import msgspec
import pytest

from outboxd.demo.counting import Count
from outboxd.demo.flows import Flow
from outboxd.demo.report import lines
from outboxd.demo.summary import Summary, summarize

FLOWS = {"orders_paid": Flow(10, 10), "emails_sent": Flow(10, 10), "push_sent": Flow(10, 10)}

PERFECT = Count(
    orders=10,
    events_missing=0,
    events_unexpected=0,
    events_committed=20,
    events_published=20,
    effects_expected=30,
    effects_missing=0,
    effects_duplicated=0,
    wrong_shelves=0,
    refunds=0,
    dead_letters=0,
    outbox_backlog=0,
    messages_left=0,
    flows=FLOWS,
    analytics_total=Flow(5350, 5350),
)


TABLE = [
    "  flow                        expected         got  repeated  at most",
    "  orders paid                       10          10",
    "  e-mails sent                      10          10",
    "  push sent                         10          10",
    "  analytics total, cents          5350        5350",
]


def summary_of(
    count: Count = PERFECT,
    *,
    orders_wanted: int | None = 10,
    kills: dict[str, int] | None = None,
    exact_queues: bool = True,
    supervisor_exit_code: int = 0,
) -> Summary:
    return summarize(
        count,
        orders_wanted=orders_wanted,
        restarts={"relay": 2},
        kills=kills or {},
        exact_queues=exact_queues,
        seconds=1.26,
        supervisor_exit_code=supervisor_exit_code,
    )


def but(**changes: Any) -> Count:
    return msgspec.structs.replace(PERFECT, **changes)


def test_a_perfect_run_has_no_problem() -> None:
    assert summary_of().problems == ()
    assert "all is well" in lines(summary_of())


@pytest.mark.parametrize(
    ("count", "problem"),
    [
        (but(orders=9), "9 of 10 orders were made"),
        (but(effects_missing=2), "2 of 30 effects are missing"),
        (but(effects_duplicated=1), "1 effects happened more than once"),
        (but(dead_letters=3), "3 messages were dead-lettered"),
        (but(outbox_backlog=4), "4 events are not published"),
        (but(messages_left=5), "5 messages are left in the queues"),
        (but(events_unexpected=1), "1 events were published that no order explains"),
        (but(events_missing=1), "1 events are missing from the outbox"),
        (but(wrong_shelves=2), "2 articles are not on their shelves as they were sold"),
        (but(refunds=1), "1 refunds are owed, and every order was paid once"),
        (
            but(flows={"emails_sent": Flow(10, 10, repeated=3, explained=2)}),
            "e-mails sent: 3 repeated, and kills and lost answers explain 2 at the most",
        ),
        (
            but(analytics_total=Flow(5350, 5300)),
            "50 minor units of sales are missing in the analytics",
        ),
        (
            but(analytics_total=Flow(5350, 5360)),
            "10 minor units were counted as sales and not ordered",
        ),
    ],
)
def test_each_number_that_must_be_zero_is_a_problem_when_it_is_not(
    count: Count, problem: str
) -> None:
    assert problem in summary_of(count).problems


def test_a_supervisor_that_did_not_end_cleanly_is_a_problem() -> None:
    assert summary_of(supervisor_exit_code=5).problems == ("the supervisor ended with exit code 5",)


def test_repetitions_that_are_explained_are_no_problem_and_are_summed_up() -> None:
    flows = {
        "emails_sent": Flow(10, 10, repeated=2, explained=2),
        "push_sent": Flow(10, 10, repeated=3, explained=5),
        "shipments_requested": Flow(10, 10, repeated=1, explained=1),
    }

    told = summary_of(but(flows=flows))

    assert told.problems == ()
    assert (told.emails_repeated, told.calls_repeated) == (2, 4)


def test_a_run_that_was_stopped_may_leave_work_but_repeat_none() -> None:
    left = but(effects_missing=2, outbox_backlog=1, messages_left=1)

    assert summary_of(left, orders_wanted=None).problems == ()
    assert summary_of(but(effects_duplicated=1), orders_wanted=None).problems != ()


@pytest.mark.parametrize(
    "count",
    [
        but(effects_missing=16, outbox_backlog=1),
        but(effects_missing=16, messages_left=1),
        but(effects_missing=16, events_missing=1),
        but(effects_missing=1),
    ],
)
def test_what_is_missing_and_waits_nowhere_is_lost_however_the_run_ended(count: Count) -> None:
    (problem,) = summary_of(count, orders_wanted=None).problems

    assert "what still waits explains" in problem


def test_where_queues_are_counted_roughly_they_prove_no_loss() -> None:
    missing = but(effects_missing=16, messages_left=1)

    assert summary_of(missing, orders_wanted=None, exact_queues=False).problems == ()


def test_work_that_a_stop_left_is_told_as_that_and_not_as_missing() -> None:
    left = but(effects_missing=4, outbox_backlog=1, messages_left=2)

    assert lines(summary_of(left, orders_wanted=None)) == [
        "10 orders, 20 of 20 events published, in 1.3 s",
        *TABLE,
        "effects: 30 expected, 26 done, 0 duplicated",
        "  4 not done yet: stopped with 1 in the outbox and 2 in the queues",
        "  nothing is lost: a daemon that starts again goes on with them",
        "restarts: 2, supervisor's exit code: 0",
        "all is well",
    ]


def test_a_run_that_had_to_drain_is_told_strictly() -> None:
    left = but(effects_missing=4, outbox_backlog=1, messages_left=2)

    told = lines(summary_of(left, kills={"relay": 1}))

    assert told[1 + len(TABLE) :][:4] == [
        "effects: 30 expected, 4 missing, 0 duplicated",
        "left: 1 in the outbox, 2 in the queues, 0 dead letters",
        "killed by the demo: 1, restarts: 2, supervisor's exit code: 0",
        "NOT as it should be:",
    ]


def test_a_flow_that_repeated_calls_says_how_often_and_how_often_it_may() -> None:
    repeated = but(flows={"push_sent": Flow(10, 10, repeated=3, explained=4)})

    assert lines(summary_of(repeated))[2].split() == ["push", "sent", "10", "10", "3", "4"]


def test_the_summary_as_json_has_every_number_for_programs() -> None:
    told = msgspec.json.decode(msgspec.json.encode(summary_of(kills={"relay": 2})))

    assert told == {
        "orders": 10,
        "events_committed": 20,
        "events_published": 20,
        "events_missing": 0,
        "events_unexpected": 0,
        "effects_expected": 30,
        "effects_missing": 0,
        "effects_duplicated": 0,
        "emails_repeated": 0,
        "calls_repeated": 0,
        "wrong_shelves": 0,
        "refunds": 0,
        "dead_letters": 0,
        "outbox_backlog": 0,
        "messages_left": 0,
        "flows": {
            "orders_paid": {"expected": 10, "got": 10, "repeated": 0, "explained": 0},
            "emails_sent": {"expected": 10, "got": 10, "repeated": 0, "explained": 0},
            "push_sent": {"expected": 10, "got": 10, "repeated": 0, "explained": 0},
            "analytics_total": {"expected": 5350, "got": 5350, "repeated": 0, "explained": 0},
        },
        "restarts": {"relay": 2},
        "kills": 2,
        "kills_by_child": {"relay": 2},
        "seconds": 1.3,
        "supervisor_exit_code": 0,
        "stopped": False,
        "problems": [],
    }
