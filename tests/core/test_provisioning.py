"""The plan for queues says what differs, in an order that can be carried out."""

import json

import pytest

from outboxd.core.provisioning import Action, Change, TypeConflict, plan, wanted_queues
from outboxd.core.settings import QueueSettings, Settings

SETTINGS = Settings(queues={"orders": QueueSettings(visibility_seconds=45)})


FIFO = Settings(queues={"orders": QueueSettings(queue_name="orders.fifo")})


def attributes_of(settings: Settings) -> dict[str, dict[str, str]]:
    """What SQS would answer once everything is as wanted."""
    return {
        queue.name: queue.created_with
        | queue.attributes
        | (
            {}
            if queue.dead_letter is None
            else {
                "RedrivePolicy": json.dumps(
                    {
                        "deadLetterTargetArn": f"arn:aws:sqs:x:1:{queue.dead_letter}",
                        "maxReceiveCount": queue.max_receive_count,
                    }
                )
            }
        )
        for queue in wanted_queues(settings)
    }


def test_the_dead_letter_queue_comes_before_its_source() -> None:
    assert [queue.name for queue in wanted_queues(SETTINGS)] == ["orders-dlq", "orders"]


def test_a_queue_is_wanted_as_its_table_says() -> None:
    letters, orders = wanted_queues(SETTINGS)

    assert letters.attributes == {"MessageRetentionPeriod": "1209600"}
    assert letters.dead_letter is None
    assert orders.attributes == {
        "VisibilityTimeout": "45",
        "ReceiveMessageWaitTimeSeconds": "10",
        "MessageRetentionPeriod": "345600",
    }
    assert (orders.dead_letter, orders.max_receive_count) == ("orders-dlq", 100)


def test_a_consumed_dead_letter_queue_is_wanted_once_as_its_own_table_says() -> None:
    settings = Settings(
        queues={
            "orders": QueueSettings(dead_letter="letters", dead_letter_retention_days=9),
            "letters": QueueSettings(retention_days=9),
        }
    )

    assert [queue.name for queue in wanted_queues(settings)] == ["letters-dlq", "letters", "orders"]


def test_names_in_sqs_are_used_and_not_the_tables() -> None:
    settings = Settings(queues={"orders": QueueSettings(queue_name="prod-orders")})

    assert [queue.name for queue in wanted_queues(settings)] == ["prod-orders-dlq", "prod-orders"]


def test_what_is_missing_is_created() -> None:
    steps = plan(wanted_queues(SETTINGS), {})

    assert [step.action for step in steps] == [Action.CREATE, Action.CREATE]
    assert not any(step.shortens_retention for step in steps)


def test_what_is_as_wanted_stays() -> None:
    steps = plan(wanted_queues(SETTINGS), attributes_of(SETTINGS))

    assert [step.action for step in steps] == [Action.UNCHANGED, Action.UNCHANGED]


def test_only_what_differs_is_a_change() -> None:
    existing = attributes_of(SETTINGS)
    existing["orders"]["VisibilityTimeout"] = "30"
    existing["orders"]["KmsMasterKeyId"] = "alias/aws/sqs"

    _, orders = plan(wanted_queues(SETTINGS), existing)

    assert orders.action is Action.UPDATE
    assert orders.changes == (Change(attribute="VisibilityTimeout", old="30", new="45"),)


def test_another_redrive_policy_is_a_change() -> None:
    existing = attributes_of(SETTINGS)
    existing["orders"]["RedrivePolicy"] = json.dumps(
        {"deadLetterTargetArn": "arn:aws:sqs:x:1:orders-dlq", "maxReceiveCount": "3"}
    )

    _, orders = plan(wanted_queues(SETTINGS), existing)

    assert orders.changes == (
        Change(
            attribute="RedrivePolicy",
            old="orders-dlq after 3 receives",
            new="orders-dlq after 100 receives",
        ),
    )


def test_a_queue_without_a_redrive_policy_is_given_one() -> None:
    existing = attributes_of(SETTINGS)
    del existing["orders"]["RedrivePolicy"]

    _, orders = plan(wanted_queues(SETTINGS), existing)

    assert [change.old for change in orders.changes] == [None]


def test_a_shorter_retention_is_known_to_lose_messages() -> None:
    existing = attributes_of(SETTINGS)
    existing["orders"]["MessageRetentionPeriod"] = "1209600"
    existing["orders-dlq"]["MessageRetentionPeriod"] = "60"

    letters, orders = plan(wanted_queues(SETTINGS), existing)

    assert orders.shortens_retention
    assert not letters.shortens_retention


def test_fifo_queues_are_created_as_such_and_for_high_throughput() -> None:
    letters, orders = plan(wanted_queues(FIFO), {})

    assert [letters.queue.name, orders.queue.name] == ["orders-dlq.fifo", "orders.fifo"]
    for step in (letters, orders):
        assert step.changes[:3] == (
            Change(attribute="FifoQueue", old=None, new="true"),
            Change(attribute="DeduplicationScope", old=None, new="messageGroup"),
            Change(attribute="FifoThroughputLimit", old=None, new="perMessageGroupId"),
        )


def test_the_deduplication_of_a_fifo_queue_that_exists_is_left_alone() -> None:
    existing = attributes_of(FIFO)
    existing["orders.fifo"]["DeduplicationScope"] = "queue"
    existing["orders.fifo"]["FifoThroughputLimit"] = "perQueue"

    steps = plan(wanted_queues(FIFO), existing)

    assert [step.action for step in steps] == [Action.UNCHANGED, Action.UNCHANGED]


@pytest.mark.parametrize(
    ("settings", "name", "fifo", "words"),
    [
        (FIFO, "orders.fifo", None, "is a standard queue, where the configuration needs a FIFO"),
        (FIFO, "orders-dlq.fifo", "false", "is a standard queue"),
        (SETTINGS, "orders", "true", "is a FIFO queue, where the configuration needs a standard"),
    ],
)
def test_a_queue_of_the_other_type_is_told_before_anything_is_done(
    settings: Settings, name: str, fifo: str | None, words: str
) -> None:
    existing = {name: {} if fifo is None else {"FifoQueue": fifo}}

    with pytest.raises(TypeConflict, match=f"queue {name} exists and {words}"):
        plan(wanted_queues(settings), existing)
