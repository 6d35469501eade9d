"""Standard queues: leases, delays, retention, limits."""

import pytest

from outboxd.localaws.errors import AwsError
from outboxd.localaws.sqs import requests
from outboxd.localaws.sqs.handles import receipt_handle
from outboxd.localaws.sqs.operations.queues import set_queue_attributes
from outboxd.localaws.sqs.standard import StandardQueue
from tests.localaws.support import Engine


def test_a_received_message_is_hidden_until_its_timeout_and_then_counts_again(
    engine: Engine,
) -> None:
    queue = engine.queue(VisibilityTimeout=30)
    engine.send(queue)
    first = engine.receive_one(queue)

    engine.wait(29.9)
    assert engine.receive(queue) == []
    engine.wait(0.1)
    second = engine.receive_one(queue)

    assert second.message.id == first.message.id
    assert second.handle != first.handle
    assert second.message.receives == 2


def test_the_timeout_of_one_receive_overrides_that_of_the_queue(engine: Engine) -> None:
    queue = engine.queue(VisibilityTimeout=30)
    engine.send(queue)

    engine.receive_one(queue, visibility=2)
    engine.wait(2)

    assert engine.depth(queue) == (1, 0, 0)


def test_a_receive_with_timeout_zero_leaves_the_message_visible(engine: Engine) -> None:
    queue = engine.queue()
    engine.send(queue)

    engine.receive_one(queue, visibility=0)

    assert engine.bodies(queue) == ["x"]


def test_messages_come_in_order_of_arrival_and_what_comes_back_goes_to_the_end(
    engine: Engine,
) -> None:
    queue = engine.queue()
    engine.send_all(queue, "a", "b", "c")
    first = engine.receive_one(queue)

    engine.hide(queue, first, 0)

    assert engine.bodies(queue) == ["b", "c", "a"]


def test_an_extended_lease_ends_that_long_after_the_extension(engine: Engine) -> None:
    queue = engine.queue(VisibilityTimeout=30)
    engine.send(queue)
    delivery = engine.receive_one(queue)
    engine.wait(20)

    engine.hide(queue, delivery, 30)

    engine.wait(29)
    assert engine.depth(queue) == (0, 1, 0)
    engine.wait(1)
    assert engine.depth(queue) == (1, 0, 0)


def test_a_late_heartbeat_is_refused(engine: Engine) -> None:
    queue = engine.queue(VisibilityTimeout=30)
    engine.send(queue)
    delivery = engine.receive_one(queue)
    engine.wait(30)

    with pytest.raises(AwsError, match="in flight") as refusal:
        engine.hide(queue, delivery, 30)

    assert refusal.value.shape == "MessageNotInflight"
    assert engine.depth(queue) == (1, 0, 0)


def test_an_old_handle_cannot_end_the_lease_of_the_next_receiver(engine: Engine) -> None:
    queue = engine.queue(VisibilityTimeout=30)
    engine.send(queue)
    old = engine.receive_one(queue)
    engine.wait(30)
    engine.receive_one(queue)

    with pytest.raises(AwsError, match="not available for visibility timeout change"):
        engine.hide(queue, old, 0)

    assert engine.depth(queue) == (0, 1, 0)


def test_a_deleted_message_cannot_be_extended(engine: Engine) -> None:
    queue = engine.queue()
    engine.send(queue)
    delivery = engine.receive_one(queue)
    engine.delete(queue, delivery)

    with pytest.raises(AwsError) as refusal:
        engine.hide(queue, delivery, 30)

    assert refusal.value.code == "InvalidParameterValue"


def test_twelve_hours_count_from_the_receive(engine: Engine) -> None:
    queue = engine.queue(VisibilityTimeout=43_200)
    engine.send(queue)
    engine.wait(600)
    delivery = engine.receive_one(queue)
    engine.hide(queue, delivery, 43_200)
    engine.wait(100)

    with pytest.raises(AwsError, match="beyond the limit"):
        engine.hide(queue, delivery, 43_101)
    engine.hide(queue, delivery, 43_100)

    engine.wait(43_099)
    assert engine.depth(queue) == (0, 1, 0)


def test_a_new_receive_starts_the_twelve_hours_again(engine: Engine) -> None:
    queue = engine.queue(VisibilityTimeout=100)
    engine.send(queue)
    engine.receive_one(queue)
    engine.wait(100)

    engine.hide(queue, engine.receive_one(queue), 43_200)

    assert engine.depth(queue) == (0, 1, 0)


def test_an_expired_handle_still_deletes_while_nobody_has_the_message(engine: Engine) -> None:
    queue = engine.queue(VisibilityTimeout=30)
    engine.send(queue)
    delivery = engine.receive_one(queue)
    engine.wait(31)

    engine.delete(queue, delivery)

    assert engine.depth(queue) == (0, 0, 0)


def test_an_old_handle_does_not_delete_what_somebody_else_has_received(engine: Engine) -> None:
    queue = engine.queue(VisibilityTimeout=30)
    engine.send(queue)
    old = engine.receive_one(queue)
    engine.wait(30)
    new = engine.receive_one(queue)

    engine.delete(queue, old)
    assert engine.depth(queue) == (0, 1, 0)
    engine.delete(queue, new, new)
    assert engine.depth(queue) == (0, 0, 0)


@pytest.mark.parametrize("handle", ["", "garbage", "AAAA", "é", receipt_handle(b"k" * 16, 1, 1)])
def test_a_handle_of_no_message_of_this_queue_is_invalid(engine: Engine, handle: str) -> None:
    queue = engine.queue()
    engine.send(queue)
    engine.receive_one(queue)

    with pytest.raises(AwsError) as refusal:
        queue.delete(handle, engine.now)
    assert refusal.value.shape == "ReceiptHandleIsInvalid"
    with pytest.raises(AwsError) as refusal:
        queue.change_visibility(handle, 0, engine.now)
    assert refusal.value.shape == "ReceiptHandleIsInvalid"


def test_a_delayed_message_is_neither_visible_nor_in_flight(engine: Engine) -> None:
    queue = engine.queue(DelaySeconds=10)
    engine.send(queue, "by the queue")
    engine.send(queue, "by itself", delay_seconds=5)
    engine.send(queue, "not at all", delay_seconds=0)
    assert engine.depth(queue) == (1, 0, 2)

    assert engine.bodies(queue) == ["not at all"]
    engine.wait(5)
    assert engine.bodies(queue) == ["by itself"]
    engine.wait(5)
    assert engine.bodies(queue) == ["by the queue"]


def test_retention_ends_visible_hidden_and_delayed_messages_alike(engine: Engine) -> None:
    queue = engine.queue(MessageRetentionPeriod=60, VisibilityTimeout=300)
    engine.send_all(queue, "a", "b")
    engine.send(queue, "late", delay_seconds=900)
    held = engine.receive_one(queue)

    engine.wait(59)
    assert engine.depth(queue) == (1, 1, 1)
    engine.wait(1)
    assert engine.depth(queue) == (0, 0, 0)
    engine.delete(queue, held)


def test_what_was_deleted_in_time_is_no_matter_of_retention(engine: Engine) -> None:
    queue = engine.queue(MessageRetentionPeriod=60)
    engine.send_all(queue, "a", "b")
    engine.delete(queue, engine.receive_one(queue))

    engine.wait(60)

    assert engine.depth(queue) == (0, 0, 0)


def test_a_shorter_retention_applies_to_what_is_already_there(engine: Engine) -> None:
    queue = engine.queue(MessageRetentionPeriod=1000)
    engine.send(queue, "old")
    engine.wait(70)
    engine.send(queue, "new")

    set_queue_attributes(
        engine.call, requests.SetQueueAttributes("orders", {"MessageRetentionPeriod": "60"})
    )

    assert engine.bodies(queue) == ["new"]


def test_at_the_in_flight_limit_receiving_is_refused_until_something_is_deleted(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StandardQueue, "IN_FLIGHT_LIMIT", 3)
    queue = engine.queue()
    engine.send_all(queue, *"abcde")

    deliveries = engine.receive(queue)
    assert len(deliveries) == 3
    with pytest.raises(AwsError) as refusal:
        engine.receive(queue)
    assert refusal.value.shape == "OverLimit"

    engine.delete(queue, deliveries[0])
    assert engine.bodies(queue) == ["d"]


def test_a_purge_takes_everything_and_is_allowed_once_a_minute(engine: Engine) -> None:
    queue = engine.queue()
    engine.send_all(queue, "a", "b")
    engine.send(queue, "c", delay_seconds=5)
    held = engine.receive_one(queue)
    queue.purge(engine.now)
    assert engine.depth(queue) == (0, 0, 0)
    engine.delete(queue, held)

    engine.wait(59)
    with pytest.raises(AwsError) as refusal:
        queue.purge(engine.now)
    assert (refusal.value.shape, refusal.value.status) == ("PurgeQueueInProgress", 403)
    engine.wait(1)
    queue.purge(engine.now)


def test_a_message_group_means_nothing_here_and_is_kept(engine: Engine) -> None:
    queue = engine.queue()
    engine.send(queue, "a", message_group_id="tenant")
    engine.send(queue, "b", message_group_id="tenant")

    deliveries = [engine.receive_one(queue), engine.receive_one(queue)]

    assert [d.message.group for d in deliveries] == ["tenant", "tenant"]
