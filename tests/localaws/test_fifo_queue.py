"""FIFO queues: order and locking within a group, deduplication, repeated receives."""

import pytest

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs.fifo import FifoQueue
from outboxd.localaws.sqs.message import Delivery
from outboxd.localaws.sqs.queue import Queue
from tests.localaws.support import Engine


@pytest.fixture
def queue(engine: Engine) -> Queue:
    return engine.queue("orders.fifo", VisibilityTimeout=30)


def test_one_receive_takes_up_to_ten_of_one_group_in_order(engine: Engine, queue: Queue) -> None:
    engine.send_all(queue, *(f"a{n:02}" for n in range(12)))

    assert engine.bodies(queue) == [f"a{n:02}" for n in range(10)]
    assert engine.bodies(queue) == []


def test_a_group_with_a_message_in_flight_is_locked_and_the_others_are_not(
    engine: Engine, queue: Queue
) -> None:
    engine.send_all(queue, "a1", "b1", "a2", "b2")
    head = engine.receive_one(queue)

    assert engine.bodies(queue) == ["b1", "b2"]
    assert engine.bodies(queue) == []
    engine.delete(queue, head)
    assert engine.bodies(queue) == ["a2"]


def test_messages_sent_to_a_locked_group_wait(engine: Engine, queue: Queue) -> None:
    engine.send_all(queue, "a1")
    engine.receive_one(queue)

    engine.send_all(queue, "a2")

    assert engine.bodies(queue) == []
    assert engine.depth(queue) == (1, 1, 0)


def test_deleting_a_part_of_what_is_in_flight_does_not_unlock_the_group(
    engine: Engine, queue: Queue
) -> None:
    engine.send_all(queue, "a1", "a2", "a3")
    first, _second = engine.receive(queue, 2)

    engine.delete(queue, first)

    assert engine.bodies(queue) == []


def test_after_expiry_the_group_is_delivered_from_its_head_again(
    engine: Engine, queue: Queue
) -> None:
    engine.send_all(queue, "a1", "a2", "a3")
    engine.receive(queue, 2)

    engine.wait(30)

    assert engine.bodies(queue) == ["a1", "a2", "a3"]


def test_a_released_head_comes_back_alone_while_its_followers_are_in_flight(
    engine: Engine, queue: Queue
) -> None:
    engine.send_all(queue, "a1", "a2", "a3")
    head, _follower = engine.receive(queue, 2)

    engine.hide(queue, head, 0)

    assert engine.bodies(queue) == ["a1"]


def test_a_head_hidden_for_longer_holds_back_its_released_followers(
    engine: Engine, queue: Queue
) -> None:
    engine.send_all(queue, "a1", "a2", "a3")
    head, *followers = engine.receive(queue)

    engine.hide(queue, head, 60)
    for follower in followers:
        engine.hide(queue, follower, 0)

    engine.wait(59)
    assert engine.bodies(queue) == []
    engine.wait(1)
    assert engine.bodies(queue) == ["a1", "a2", "a3"]


@pytest.mark.parametrize(("position", "visible"), [(0, []), (1, ["a1"]), (2, ["a1", "a2"])])
def test_only_what_stands_before_the_first_hidden_message_is_delivered(
    engine: Engine, queue: Queue, position: int, visible: list[str]
) -> None:
    engine.send_all(queue, "a1", "a2", "a3")
    deliveries = engine.receive(queue)
    engine.hide(queue, deliveries[position], 300)

    engine.wait(30)

    assert engine.bodies(queue) == visible


def test_ready_groups_take_turns(engine: Engine, queue: Queue) -> None:
    engine.send_all(queue, "a1", "b1", "b2", "c1", "a2")

    assert engine.bodies(queue, 3, visibility=0) == ["a1", "a2", "b1"]
    assert engine.bodies(queue, 10, visibility=0) == ["c1", "a1", "a2", "b1", "b2"]


def test_a_group_that_was_emptied_works_again(engine: Engine, queue: Queue) -> None:
    engine.send_all(queue, "a1")
    engine.delete(queue, engine.receive_one(queue))
    assert engine.bodies(queue) == []

    engine.send_all(queue, "a2")

    assert engine.bodies(queue) == ["a2"]


def test_sequence_numbers_rise(engine: Engine, queue: Queue) -> None:
    engine.send_all(queue, "a1", "b1", "a2")

    numbers = [int(d.message.sequence or 0) for d in engine.receive(queue)]

    assert numbers[0] < numbers[1]
    assert len(set(numbers)) == 3


def test_an_expired_handle_neither_deletes_nor_extends(engine: Engine, queue: Queue) -> None:
    engine.send_all(queue, "a1")
    delivery = engine.receive_one(queue)
    engine.wait(30)

    with pytest.raises(AwsError, match="The receipt handle has expired"):
        engine.delete(queue, delivery)
    with pytest.raises(AwsError, match="in flight"):
        engine.hide(queue, delivery, 10)

    assert engine.bodies(queue) == ["a1"]


def test_a_handle_that_others_overtook_does_not_delete(engine: Engine, queue: Queue) -> None:
    engine.send_all(queue, "a1")
    old = engine.receive_one(queue)
    engine.wait(30)
    engine.receive_one(queue)

    with pytest.raises(AwsError, match="The receipt handle has expired"):
        engine.delete(queue, old)


def test_deleting_twice_succeeds(engine: Engine, queue: Queue) -> None:
    engine.send_all(queue, "a1")
    delivery = engine.receive_one(queue)

    engine.delete(queue, delivery, delivery)

    assert engine.depth(queue) == (0, 0, 0)


def test_a_repeated_send_is_accepted_and_not_delivered_for_five_minutes(
    engine: Engine, queue: Queue
) -> None:
    def send(body: str) -> tuple[str, str | None]:
        sent = engine.send(queue, body, message_group_id="g", message_deduplication_id="payment-1")
        return sent.message_id, sent.sequence_number

    first = send("one")
    engine.wait(299)
    assert send("two") == first
    assert engine.bodies(queue) == ["one"]
    engine.wait(1)
    assert send("three") != first


def test_deduplication_outlives_the_deletion(engine: Engine, queue: Queue) -> None:
    engine.send(queue, "one", message_group_id="g", message_deduplication_id="d")
    engine.delete(queue, engine.receive_one(queue))

    engine.send(queue, "two", message_group_id="g", message_deduplication_id="d")

    assert engine.depth(queue) == (0, 0, 0)


def test_a_purge_forgets_deduplication_ids(engine: Engine, queue: Queue) -> None:
    engine.send(queue, "one", message_group_id="g", message_deduplication_id="d")
    queue.purge(engine.now)

    engine.send(queue, "two", message_group_id="g", message_deduplication_id="d")

    assert engine.bodies(queue) == ["two"]


def test_content_takes_the_place_of_a_missing_id(engine: Engine, queue: Queue) -> None:
    engine.send(queue, "same", message_group_id="g")
    engine.send(queue, "same", message_group_id="other")
    engine.send(queue, "same", message_group_id="g", message_deduplication_id="explicit")

    assert engine.bodies(queue) == ["same", "same"]


@pytest.mark.parametrize(("scope", "delivered"), [("queue", 1), ("messageGroup", 2)])
def test_the_scope_of_deduplication_is_the_queue_or_the_group(
    engine: Engine, scope: str, delivered: int
) -> None:
    queue = engine.queue("scoped.fifo", DeduplicationScope=scope)
    engine.send(queue, "one", message_group_id="g", message_deduplication_id="d")
    engine.send(queue, "two", message_group_id="h", message_deduplication_id="d")

    assert len(engine.bodies(queue)) == delivered


def test_at_the_in_flight_limit_nothing_comes_and_nothing_is_refused(
    engine: Engine, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FifoQueue, "IN_FLIGHT_LIMIT", 2)
    engine.send_all(queue, "a1", "b1", "c1")

    assert len(engine.bodies(queue)) == 2
    assert engine.bodies(queue) == []


class TestReceiveAgain:
    """ReceiveRequestAttemptId, for a receive whose answer was lost on the way."""

    def receive(self, engine: Engine, queue: Queue) -> list[Delivery]:
        assert isinstance(queue, FifoQueue)
        again = queue.receive_again("attempt-1", 30, engine.now)
        if again:
            return again
        deliveries = engine.receive(queue)
        queue.remember_attempt("attempt-1", deliveries, engine.now)
        return deliveries

    def test_the_same_messages_come_with_the_same_handles(
        self, engine: Engine, queue: Queue
    ) -> None:
        engine.send_all(queue, "a1", "a2")
        first = self.receive(engine, queue)
        engine.wait(20)

        assert self.receive(engine, queue) == first
        assert first[0].message.receives == 1

        engine.wait(20)
        assert engine.depth(queue) == (0, 2, 0), "the repetition starts the timeout anew"

    def test_not_once_one_of_them_was_deleted(self, engine: Engine, queue: Queue) -> None:
        engine.send_all(queue, "a1", "a2")
        engine.delete(queue, self.receive(engine, queue)[0])

        assert self.receive(engine, queue) == []

    def test_not_once_the_visibility_was_changed(self, engine: Engine, queue: Queue) -> None:
        engine.send_all(queue, "a1")
        engine.hide(queue, self.receive(engine, queue)[0], 60)

        assert self.receive(engine, queue) == []

    def test_after_expiry_it_is_a_new_receive(self, engine: Engine, queue: Queue) -> None:
        engine.send_all(queue, "a1")
        first = self.receive(engine, queue)
        engine.wait(30)

        second = self.receive(engine, queue)

        assert second[0].handle != first[0].handle
        assert second[0].message.receives == 2
