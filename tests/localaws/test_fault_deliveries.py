"""Faults of deliveries: duplicates, and messages out of order."""

import threading
from typing import Any

from tests.localaws.staging import Stage


def test_a_message_is_delivered_again_though_the_first_was_deleted(stage: Stage) -> None:
    duplicate = stage.faults.duplicate(queue=stage.name)
    stage.send("x")
    (first,) = stage.receive()
    stage.delete(first)

    (second,) = stage.receive()

    assert (second["MessageId"], second["Body"]) == (first["MessageId"], "x")
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    stage.delete(second)
    assert (stage.depth(), duplicate.fired) == ((0, 0), 1)


def test_both_copies_may_be_in_hand_at_once_and_say_that_they_are_new(stage: Stage) -> None:
    stage.faults.duplicate(queue=stage.name)
    stage.send("x")

    deliveries = [*stage.receive(), *stage.receive()]

    counts = [m["Attributes"]["ApproximateReceiveCount"] for m in deliveries]
    assert counts == ["1", "1"]
    assert stage.depth() == (0, 2)
    for message in deliveries:
        stage.delete(message)
    assert stage.depth() == (0, 0)


def test_every_message_is_copied_once_however_often_it_comes_back(stage: Stage) -> None:
    duplicate = stage.faults.duplicate(queue=stage.name, count=None)
    stage.send(*"abc")
    delivered = []

    for _ in range(3):
        received = stage.receive()
        delivered += [message["Body"] for message in received]
        for message in received:
            stage.delete(message)

    assert (sorted(delivered), duplicate.fired) == (list("aabbcc"), 3)
    assert stage.depth() == (0, 0)


def test_duplicates_count_messages_and_are_chosen_by_their_text(stage: Stage) -> None:
    stage.faults.duplicate(queue=stage.name, containing="b")
    stage.send(*"abc")

    assert stage.bodies() == ["a", "b", "c"]
    assert stage.bodies() == ["b"]


def test_a_poll_that_was_waiting_before_is_hit_as_well(stage: Stage) -> None:
    delivered: list[Any] = []
    stage.aws.reset_calls()
    thread = threading.Thread(target=lambda: delivered.extend(stage.receive(wait=20)))
    thread.start()
    while stage.aws.calls("ReceiveMessage", stage.name) == 0:
        pass
    duplicate = stage.faults.duplicate(queue=stage.name)

    stage.send("x")
    thread.join()

    assert [message["Body"] for message in delivered + stage.receive()] == ["x", "x"]
    assert duplicate.fired == 1


def test_a_copy_is_as_near_to_the_dead_letter_queue_as_its_message_was(stage: Stage) -> None:
    dead = stage.sqs.create_queue(QueueName=f"{stage.name}-dlq")["QueueUrl"]
    arn = stage.aws.queues()[f"{stage.name}-dlq"].arn
    stage.sqs.set_queue_attributes(
        QueueUrl=stage.url,
        Attributes={
            "RedrivePolicy": f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 1}}',
        },
    )
    stage.faults.duplicate(queue=stage.name)
    stage.send("x")

    assert (stage.bodies(), stage.bodies()) == (["x"], ["x"])

    stage.aws.advance(60)
    assert stage.aws.queues()[f"{stage.name}-dlq"].visible == 2
    stage.sqs.delete_queue(QueueUrl=dead)


def test_the_newest_messages_come_first(stage: Stage) -> None:
    reorder = stage.faults.reorder(queue=stage.name, count=2)
    stage.send(*"abcdef")

    assert stage.bodies(2) == ["f", "e"]
    assert stage.bodies(2) == ["d", "c"]
    assert stage.bodies() == ["a", "b"]
    assert reorder.fired == 2


def test_a_single_message_has_no_order(stage: Stage) -> None:
    reorder = stage.faults.reorder(queue=stage.name)
    stage.send("a")

    assert (stage.bodies(), stage.bodies(), reorder.fired) == (["a"], [], 0)


def test_a_receive_may_be_out_of_order_and_duplicated(stage: Stage) -> None:
    stage.faults.reorder(queue=stage.name)
    stage.faults.duplicate(queue=stage.name, count=None)
    stage.send(*"ab")

    assert (stage.bodies(), sorted(stage.bodies())) == (["b", "a"], ["a", "b"])


def test_a_fifo_queue_keeps_its_promises(fifo_stage: Stage) -> None:
    faults = [fifo_stage.faults.reorder(count=None), fifo_stage.faults.duplicate(count=None)]
    for body in "abc":
        fifo_stage.sqs.send_message(
            QueueUrl=fifo_stage.url, MessageBody=body, MessageGroupId="group"
        )

    messages = fifo_stage.receive()

    assert [message["Body"] for message in messages] == ["a", "b", "c"]
    for message in messages:
        fifo_stage.delete(message)
    assert (fifo_stage.depth(), [fault.fired for fault in faults]) == ((0, 0), [0, 0])


def test_a_throttled_receive_delivers_nothing_and_copies_nothing(stage: Stage) -> None:
    duplicate = stage.faults.duplicate(queue=stage.name)
    stage.faults.swallow("SendMessage", queue=stage.name)
    stage.send("x")

    assert (stage.bodies(), duplicate.fired) == ([], 0)
