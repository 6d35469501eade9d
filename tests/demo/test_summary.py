"""What counts as a run that went well."""

import msgspec
import pytest

from outboxd.demo.counting import Count
from outboxd.demo.summary import Summary, lines, summarize

PERFECT = Count(
    orders=10,
    events_committed=20,
    events_published=20,
    effects_expected=30,
    effects_missing=0,
    effects_duplicated=0,
    emails_repeated=0,
    dead_letters=0,
    outbox_backlog=0,
    messages_left=0,
)


def summary_of(
    count: Count = PERFECT,
    *,
    orders_wanted: int | None = 10,
    kills: dict[str, int] | None = None,
    supervisor_exit_code: int = 0,
) -> Summary:
    return summarize(
        count,
        orders_wanted=orders_wanted,
        restarts={"relay": 2},
        kills=kills or {},
        concurrency=5,
        seconds=1.26,
        supervisor_exit_code=supervisor_exit_code,
    )


def but(**changes: int) -> Count:
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
        (but(events_committed=21), "1 events were published by repeated requests"),
        (but(events_committed=19), "1 events are missing from the outbox"),
        (but(emails_repeated=1), "1 e-mails were repeated, and kills explain 0 at the most"),
    ],
)
def test_each_number_that_must_be_zero_is_a_problem_when_it_is_not(
    count: Count, problem: str
) -> None:
    assert problem in summary_of(count).problems


def test_a_supervisor_that_did_not_end_cleanly_is_a_problem() -> None:
    assert summary_of(supervisor_exit_code=5).problems == ("the supervisor ended with exit code 5",)


def test_emails_may_repeat_as_often_as_pools_were_killed_while_sending() -> None:
    kills = {"consumer:a/1": 2, "relay": 9}

    assert summary_of(but(emails_repeated=10), kills=kills).problems == ()
    assert summary_of(but(emails_repeated=11), kills=kills).problems != ()


def test_a_run_that_was_interrupted_may_leave_work_but_repeat_none() -> None:
    left = but(effects_missing=2, outbox_backlog=1, messages_left=1)

    assert summary_of(left, orders_wanted=None).problems == ()
    assert summary_of(but(effects_duplicated=1), orders_wanted=None).problems != ()


def test_the_summary_as_json_has_every_number_for_programs() -> None:
    told = msgspec.json.decode(msgspec.json.encode(summary_of(kills={"relay": 2})))

    assert told == {
        "orders": 10,
        "events_committed": 20,
        "events_published": 20,
        "effects_expected": 30,
        "effects_missing": 0,
        "effects_duplicated": 0,
        "emails_repeated": 0,
        "dead_letters": 0,
        "outbox_backlog": 0,
        "messages_left": 0,
        "restarts": {"relay": 2},
        "kills": 2,
        "kills_by_child": {"relay": 2},
        "seconds": 1.3,
        "supervisor_exit_code": 0,
        "problems": [],
    }
