"""Message move tasks: dead letters back to their queues."""

import pytest

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs import requests, responses
from outboxd.localaws.sqs.moves import STRIDE
from outboxd.localaws.sqs.operations import moves
from outboxd.localaws.sqs.queue import Queue
from tests.localaws.support import Engine, redrive_policy


def start(
    engine: Engine, source: Queue, destination: Queue | None = None, rate: int | None = None
) -> str:
    arn = None if destination is None else destination.identity.arn
    request = requests.StartMessageMoveTask(source.identity.arn, arn, rate)
    return moves.start_message_move_task(engine.call, request).task_handle


def latest(engine: Engine, source: Queue) -> responses.MoveTaskEntry:
    request = requests.ListMessageMoveTasks(source.identity.arn)
    return moves.list_message_move_tasks(engine.call, request).results[0]


def cancel(engine: Engine, handle: str) -> int:
    request = requests.CancelMessageMoveTask(handle)
    return moves.cancel_message_move_task(engine.call, request).moved


def bury(engine: Engine, queue: Queue, *bodies: str) -> None:
    """Send messages and have them die; the queue allows one receive."""
    engine.send_all(queue, *bodies)
    for delivery in engine.receive(queue):
        engine.hide(queue, delivery, 0)


def test_letters_go_back_to_the_queues_they_came_from_as_new_messages(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    other = engine.queue("other", RedrivePolicy=redrive_policy(dead, 1))
    bury(engine, queue, "a", "b")
    bury(engine, other, "c")
    letter = engine.receive_one(dead, visibility=0).message.id
    engine.wait(60)

    start(engine, dead)

    assert engine.depth(dead) == (0, 0, 0)
    assert engine.bodies(other) == ["c"]
    returned = engine.receive(queue)
    assert {d.message.body for d in returned} == {"a", "b"}
    assert {d.message.receives for d in returned} == {1}
    assert {d.message.sent_at for d in returned} == {engine.now}
    assert letter not in {d.message.id for d in returned}
    task = latest(engine, dead)
    assert (task.status, task.moved, task.to_move) == ("COMPLETED", 3, 3)
    assert (task.task_handle, task.destination_arn) == (None, None)


def test_a_destination_of_ones_own_choice(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    elsewhere = engine.queue("elsewhere")
    bury(engine, queue, "a")

    start(engine, dead, elsewhere)

    assert engine.bodies(elsewhere) == ["a"]
    assert latest(engine, dead).destination_arn == elsewhere.identity.arn


def test_a_rate_is_kept_and_a_cancelled_task_leaves_the_rest(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.send_all(dead, *"abcdefghij")
    handle = start(engine, dead, queue, rate=2)
    assert latest(engine, dead).task_handle == handle

    moved = []
    for _ in range(3):
        engine.wait(0.5)
        engine.moves.run(engine.now)
        moved.append(engine.depth(queue)[0])
    assert moved == [1, 2, 3]
    assert engine.moves.next_at() == engine.now + 0.5

    assert cancel(engine, handle) == 3
    engine.wait(60)
    engine.moves.run(engine.now)
    assert (engine.depth(dead)[0], engine.depth(queue)[0]) == (7, 3)
    assert latest(engine, dead).status == "CANCELLED"
    assert engine.moves.next_at() is None


def test_a_task_without_a_rate_lets_others_in_between(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    for _ in range(STRIDE + 1):
        engine.send(dead)

    start(engine, dead, queue)
    assert engine.depth(queue)[0] == STRIDE
    assert latest(engine, dead).status == "RUNNING"
    engine.moves.run(engine.now)
    assert latest(engine, dead).status == "COMPLETED"


def test_fifo_letters_keep_their_order(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1, suffix=".fifo")
    bury(engine, queue, "a1", "a2", "b1", "a3")

    start(engine, dead)

    bodies = engine.bodies(queue)
    assert [body for body in bodies if body[0] == "a"] == ["a1", "a2", "a3"]
    assert "b1" in bodies


def test_a_letter_without_an_origin_ends_the_task_and_is_not_lost(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    bury(engine, queue, "a")
    engine.send_all(dead, "written by hand", "b")

    start(engine, dead)

    task = latest(engine, dead)
    assert (task.status, task.failure_reason) == ("FAILED", "CouldNotDetermineMessageSource")
    assert task.moved == 1
    assert engine.bodies(dead) == ["written by hand", "b"]


@pytest.mark.parametrize("deleted", ["source", "destination"])
def test_a_queue_that_disappears_ends_the_task(engine: Engine, deleted: str) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.send_all(dead, "a", "b", "c")
    start(engine, dead, queue, rate=1)
    engine.wait(1)
    engine.moves.run(engine.now)

    engine.registry.delete(dead if deleted == "source" else queue, engine.now)
    engine.wait(1)
    engine.moves.run(engine.now)

    (task,) = engine.moves.recent(dead.identity.arn, 10)
    assert task.moved == 1
    assert (task.status.value, task.failure) == (
        "FAILED",
        "AWS.SimpleQueueService.NonExistentQueue",
    )
    assert engine.moves.next_at() is None


def test_one_task_at_a_time(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.send_all(dead, "a", "b")
    start(engine, dead, queue, rate=1)

    with pytest.raises(AwsError, match="already a task running"):
        start(engine, dead, queue)


def test_what_is_no_dead_letter_queue_cannot_be_a_source(engine: Engine) -> None:
    with pytest.raises(AwsError, match="must be configured as a Dead Letter Queue"):
        start(engine, engine.queue())


def test_source_and_destination_must_exist_differ_and_be_of_one_type(engine: Engine) -> None:
    _, dead = engine.queue_with_dead_letters(max_receive_count=1)
    call = engine.call

    def refused(source_arn: str, destination_arn: str | None) -> str:
        request = requests.StartMessageMoveTask(source_arn, destination_arn)
        with pytest.raises(AwsError) as refusal:
            moves.start_message_move_task(call, request)
        return refusal.value.shape

    arn = dead.identity.arn
    assert refused("", None) == "MissingRequiredParameterException"
    assert refused(f"{arn}-not", None) == "ResourceNotFoundException"
    assert refused(arn, f"{arn}-not") == "ResourceNotFoundException"
    assert refused(arn, arn) == "InvalidParameterValueException"
    assert refused(arn, engine.queue("f.fifo").identity.arn) == "InvalidParameterValueException"


@pytest.mark.parametrize("rate", [0, 501])
def test_a_rate_is_between_1_and_500(engine: Engine, rate: int) -> None:
    _, dead = engine.queue_with_dead_letters(max_receive_count=1)

    with pytest.raises(AwsError, match="MaxNumberOfMessagesPerSecond"):
        start(engine, dead, rate=rate)


def test_only_a_running_task_can_be_cancelled(engine: Engine) -> None:
    queue, dead = engine.queue_with_dead_letters(max_receive_count=1)
    engine.send(dead)
    handle = start(engine, dead, queue, rate=1)
    cancel(engine, handle)

    for bad in ("", "garbage", "e30="):
        with pytest.raises(AwsError, match="TaskHandle"):
            cancel(engine, bad)
    with pytest.raises(AwsError, match="Only active tasks can be cancelled"):
        cancel(engine, handle)


def test_the_latest_ten_tasks_are_remembered_newest_first(engine: Engine) -> None:
    _, dead = engine.queue_with_dead_letters(max_receive_count=1)
    for _ in range(12):
        engine.wait(1)
        start(engine, dead)

    request = requests.ListMessageMoveTasks(dead.identity.arn, 10)
    started = [
        task.started_timestamp
        for task in moves.list_message_move_tasks(engine.call, request).results
    ]

    assert len(started) == 10
    assert started == sorted(started, reverse=True)
    assert started[0] == int(engine.now * 1000)
