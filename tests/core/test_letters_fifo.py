"""What a FIFO dead-letter queue needs of a letter, and a standard one refuses."""

import pytest

from outboxd.core.letters import MAX_MESSAGE_BYTES, Letter, write_letter
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter


def a_letter(
    queue: str, group: str | None, message_id: str = "m1", body: str = "{}", now: float = 1.7e9
) -> Letter:
    message = ReceivedMessage(
        message_id=message_id,
        receipt_handle="r",
        receive_count=1,
        sent_at=1.7e9,
        body=body,
        group_id=group,
    )
    return write_letter(queue, message, None, DeadLetter(), [], now)


@pytest.mark.parametrize(
    ("queue", "group", "expected"),
    [
        ("orders.fifo", "order/1", ("order/1", "m1")),
        # A group without FIFO is that of a fair queue.
        ("orders", "tenant-1", ("tenant-1", None)),
        ("orders", None, (None, None)),
        ("orders.fifo", None, (None, None)),
    ],
)
def test_only_a_fifo_queues_letter_has_a_deduplication_id(
    queue: str, group: str | None, expected: tuple[str | None, str | None]
) -> None:
    letter = a_letter(queue, group)

    assert (letter.group_id, letter.deduplication_id) == expected


def test_a_letter_written_twice_is_the_same_and_that_of_a_redrive_another() -> None:
    first = a_letter("orders.fifo", "order/1", now=1.7e9)
    again = a_letter("orders.fifo", "order/1", now=1.8e9)
    redriven = a_letter("orders.fifo", "order/1", message_id="m2")

    assert first.deduplication_id == again.deduplication_id
    assert first.deduplication_id != redriven.deduplication_id


def test_a_letter_without_room_for_its_reason_has_both_too() -> None:
    letter = a_letter("orders.fifo", "order/1", body="x" * MAX_MESSAGE_BYTES)

    assert letter.attributes == {}
    assert (letter.group_id, letter.deduplication_id) == ("order/1", "m1")
