"""What makes the daemon anything but healthy, and what is only told."""

import pytest

from outboxd.supervision.status.model import Destination, QueueHistory, Status
from tests.supervision.status_scene import a_child, a_handler, a_queue, a_status, an_outbox

WAITING = QueueHistory(visible=(3.0,) * 6, handled_per_second=(), p95_seconds=())
TELLS = QueueHistory(visible=(None,) * 6, handled_per_second=(0.0,) * 6, p95_seconds=())
BEGINS = QueueHistory(visible=(None,) * 6, handled_per_second=(None, *(0.0,) * 5), p95_seconds=())
REPLACED = QueueHistory(visible=(*(3.0,) * 5, None), handled_per_second=(0.0,) * 6, p95_seconds=())
SHUT = Destination(name="sqs:orders", up=False, published_per_second=0.0)


@pytest.mark.parametrize(
    ("status", "health", "texts"),
    [
        (a_status(outbox=an_outbox(), queues=(a_queue(),)), "healthy", []),
        (a_status(children=(a_child(state="starting"),)), "starting", ["relay is starting"]),
        (
            a_status(children=(a_child(state="starting", restarts=1),)),
            "degraded",
            ["relay is starting"],
        ),
        (
            a_status(children=(a_child("consumer:orders/1", "failed"),)),
            "degraded",
            ["consumer:orders/1 keeps failing; it is tried again slowly"],
        ),
        (a_status(broken=("relay has given up",)), "unhealthy", ["relay has given up"]),
        (
            a_status(
                children=(a_child("consumer:orders/1"),),
                not_ready=("consumer:orders/1 has not received for 31 s",),
            ),
            "degraded",
            ["consumer:orders/1 has not received for 31 s"],
        ),
        (
            a_status(
                children=(a_child("consumer:orders/1", heartbeat_age_seconds=7),),
                not_ready=("consumer:orders/1 has not received for 31 s",),
            ),
            "degraded",
            ["consumer:orders/1 has said nothing for 7.0 s"],
        ),
        (a_status(children=(a_child(heartbeat_age_seconds=4.9),)), "healthy", []),
        (
            a_status(children=(a_child(heartbeat_age_seconds=70),), heartbeat_interval_seconds=30),
            "healthy",
            [],
        ),
        (
            a_status(children=(a_child(heartbeat_age_seconds=80),), heartbeat_interval_seconds=30),
            "degraded",
            ["relay has said nothing for 1 min 20 s"],
        ),
        (
            a_status(children=(a_child(state="draining", heartbeat_age_seconds=70),)),
            "degraded",
            ["relay finishes what it has, to be replaced"],
        ),
        (
            a_status(
                children=(a_child("relay", "backoff"),),
                not_ready=("relay is backoff",),
            ),
            "degraded",
            ["relay has ended, and waits for its next start"],
        ),
        (
            a_status(outbox=an_outbox(destinations=(SHUT,))),
            "degraded",
            ["sqs:orders is not reached: its events wait, and nothing is lost"],
        ),
        (
            a_status(outbox=an_outbox(pending=9, oldest_seconds=200)),
            "degraded",
            ["the oldest event has waited for 3 min 20 s"],
        ),
        (
            a_status(outbox=an_outbox(database_failures_per_second=0.1)),
            "degraded",
            ["the database fails statements of the relay"],
        ),
        (
            a_status(queues=(a_queue(blocked_by=("database",)),)),
            "degraded",
            ["orders receives nothing: the database is away"],
        ),
        (
            a_status(queues=(a_queue(visible=3, history=WAITING),)),
            "degraded",
            ["3 messages wait in orders, and none was received in the last minute"],
        ),
        (
            a_status(queues=(a_queue(visible=3, history=WAITING, running=10),)),
            "healthy",
            [],
        ),
        (
            a_status(queues=(a_queue(visible=3, history=WAITING, paused=True),)),
            "healthy",
            ["orders is paused by an operator"],
        ),
        (
            a_status(queues=(a_queue(receive_errors_per_second=0.2),)),
            "degraded",
            ["orders: receiving fails, and is tried again"],
        ),
        (
            a_status(queues=(a_queue(counted_seconds_ago=None, history=TELLS),)),
            "degraded",
            ["orders has not been counted: how much waits is not known"],
        ),
        (a_status(queues=(a_queue(counted_seconds_ago=None, history=BEGINS),)), "healthy", []),
        (a_status(queues=(a_queue(counted_seconds_ago=None, history=REPLACED),)), "healthy", []),
        (
            a_status(queues=(a_queue(dead_letters=None),)),
            "healthy",
            ["the dead letters of orders cannot be counted"],
        ),
        (
            a_status(queues=(a_queue(counted_seconds_ago=300),)),
            "degraded",
            ["orders was last counted 5 min ago"],
        ),
        (
            a_status(queues=(a_queue(dead_letters=1),)),
            "healthy",
            ["1 dead letter waits for a person: orders"],
        ),
        (
            a_status(queues=(a_queue(p95_seconds=117, visible=1867),)),
            "healthy",
            ["orders is late: 1 min 57 s from event to effect, 1,867 messages wait"],
        ),
        (a_status(outbox=an_outbox(dead=2)), "healthy", ["2 events are dead in the outbox"]),
        (
            a_status(handlers=(a_handler(failed_share=0.9),)),
            "degraded",
            ["ship fails: 90% of its last minute's messages"],
        ),
        (
            a_status(handlers=(a_handler(failed_share=0.1),)),
            "healthy",
            ["ship fails: 10% of its last minute's messages"],
        ),
        (
            a_status(reload_refused=True),
            "healthy",
            ["the last reload was refused: the old configuration is in use"],
        ),
        (a_status(stopping=True, not_ready=("stopping",)), "stopping", []),
    ],
)
def test_facts_make_one_word_and_their_reasons(
    status: Status, health: str, texts: list[str]
) -> None:
    assert [problem.text for problem in status.problems] == texts
    assert status.health == health


def test_the_worst_comes_first_and_the_summary_counts() -> None:
    status = a_status(
        broken=("relay has given up",),
        children=(a_child(state="failed"),),
        queues=(a_queue(dead_letters=1),),
    )

    assert [problem.level for problem in status.problems] == ["critical", "warning", "note"]
    assert a_status(queues=(a_queue(dead_letters=1),)).summary == (
        "All is at work; 1 thing to look at."
    )
    assert a_status(children=(a_child(state="failed"),)).summary == "It works, with 1 problem."


def test_failures_of_processes_are_one_line() -> None:
    one = a_status(children=(a_child(recent_failures=1), a_child("extender")))
    two = a_status(children=(a_child(recent_failures=1), a_child("extender", recent_failures=2)))

    assert [each.text for each in (*one.problems, *two.problems)] == [
        "relay failed once in the last 15 minutes",
        "2 processes failed 3 times in the last 15 minutes",
    ]
    assert one.health == two.health == "healthy"


def test_many_problems_do_not_hide_the_worst() -> None:
    queues = tuple(a_queue(f"queue-{number}", dead_letters=1) for number in range(40))
    problems = a_status(broken=("relay has given up",), queues=queues).problems

    assert problems[0].text == "relay has given up"
    assert (len(problems), problems[-1].text) == (16, "26 more problems, not shown here")


def test_a_sum_of_which_one_part_is_not_known_is_not_known() -> None:
    status = a_status(queues=(a_queue(visible=3), a_queue("other", visible=None)))

    assert status.totals.visible is None
    assert status.totals.dead_letters == 0


def test_letters_in_a_queue_that_others_share_are_counted_once() -> None:
    shared = {"dead_letter_queue": "all-dlq", "dead_letters": 3}
    queues = (
        a_queue("orders", **shared),
        a_queue("payments", **shared),
        a_queue("refunds", dead_letter_queue="all-dlq", dead_letters=None),
        a_queue("mail", dead_letters=2),
    )

    assert a_status(queues=queues).totals.dead_letters == 5
