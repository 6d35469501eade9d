"""Counted calls: by operation and queue, whatever becomes of them."""

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError

from outboxd.localaws.calls import CallCount
from tests.localaws.staging import Stage, a_queue, open_stage


@pytest.fixture
def alone() -> Iterator[Stage]:
    """A server that nobody else calls."""
    with open_stage() as (aws, sqs):
        stage = a_queue(aws, sqs)
        aws.reset_calls()
        yield stage


def test_calls_are_counted_by_operation_and_queue(alone: Stage) -> None:
    other = a_queue(alone.aws, alone.sqs)
    alone.send("x", "y")
    other.send("z")
    alone.receive()
    alone.sqs.list_queues()

    assert alone.aws.call_counts() == [
        CallCount("sqs", "CreateQueue", "us-east-1", other.name, 1),
        CallCount("sqs", "ListQueues", "us-east-1", None, 1),
        CallCount("sqs", "ReceiveMessage", "us-east-1", alone.name, 1),
        CallCount("sqs", "SendMessage", "us-east-1", alone.name, 2),
        CallCount("sqs", "SendMessage", "us-east-1", other.name, 1),
    ]


def test_they_are_summed_up_by_globs(alone: Stage) -> None:
    alone.send("x", "y")
    alone.send_batch("z")
    alone.sqs.list_queues()

    assert alone.aws.calls() == 4
    assert alone.aws.calls("SendMessage*") == 3
    assert alone.aws.calls("SendMessage", alone.name) == 2
    assert alone.aws.calls("*", "queue-*") == 3
    assert alone.aws.calls("DeleteMessage") == 0


def test_a_refused_call_counts_and_so_does_one_that_a_fault_has_hit(alone: Stage) -> None:
    alone.faults.throttle("SendMessage")
    for body in ("x", "\x00"):
        with pytest.raises(ClientError):
            alone.send(body)

    assert alone.aws.calls("SendMessage", alone.name) == 2


def test_a_call_by_arn_is_about_its_queue(alone: Stage) -> None:
    arn = alone.aws.queues()[alone.name].arn

    alone.sqs.list_message_move_tasks(SourceArn=arn)

    assert alone.aws.calls("ListMessageMoveTasks", alone.name) == 1


def test_counting_starts_anew(alone: Stage) -> None:
    alone.send("x")
    alone.aws.reset_calls()
    alone.send("x")

    assert alone.aws.calls() == 1
