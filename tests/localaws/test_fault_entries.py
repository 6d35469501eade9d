"""Faults of single entries of a batch: the neighbours are carried out."""

from typing import Any

import pytest

from tests.localaws.staging import Stage, ids, refused

BODIES = tuple("abcde")


def failed(answer: Any) -> list[tuple[str, str, bool]]:
    return [(e["Id"], e["Code"], e["SenderFault"]) for e in answer.get("Failed", [])]


def test_chosen_entries_fail_as_the_fault_of_sqs(stage: Stage) -> None:
    stage.faults.fail_entries("SendMessageBatch", entries=[1, 3], queue=stage.name)

    answer = stage.send_batch(*BODIES)

    assert ids(answer["Successful"]) == ["id-0", "id-2", "id-4"]
    assert failed(answer) == [("id-1", "InternalError", False), ("id-3", "InternalError", False)]
    assert answer["Failed"][0]["Message"]
    assert stage.bodies() == ["a", "c", "e"]


def test_an_entry_may_fail_as_the_sender_s_fault_and_by_any_code(stage: Stage) -> None:
    stage.faults.fail_entries(
        "SendMessageBatch",
        code="InvalidMessageContents",
        sender_fault=True,
        message="why",
        entries=[0],
        queue=stage.name,
    )

    answer = stage.send_batch("a", "b")

    assert failed(answer) == [("id-0", "InvalidMessageContents", True)]
    assert answer["Failed"][0]["Message"] == "why"


def test_all_entries_fail_unless_some_are_chosen(stage: Stage) -> None:
    stage.faults.fail_entries("SendMessageBatch", queue=stage.name)

    answer = stage.send_batch(*BODIES)

    assert "Successful" not in answer
    assert len(failed(answer)) == 5
    assert stage.depth() == (0, 0)


def test_an_entry_may_be_carried_out_and_reported_as_failed(stage: Stage) -> None:
    stage.faults.fail_entries("SendMessageBatch", when="after", entries=[0], queue=stage.name)

    answer = stage.send_batch("a", "b")

    assert (failed(answer), ids(answer["Successful"])) == (
        [("id-0", "InternalError", False)],
        ["id-1"],
    )
    assert stage.bodies() == ["a", "b"]


@pytest.mark.parametrize(("share", "number"), [(0.1, 1), (0.4, 2), (0.5, 3), (1.0, 5)])
def test_a_share_of_the_entries_is_drawn_by_the_seed(
    stage: Stage, share: float, number: int
) -> None:
    drawn = []
    for _ in range(2):
        with stage.faults.fail_entries(
            "SendMessageBatch", share=share, seed=7, count=3, queue=stage.name
        ):
            drawn.append([failed(stage.send_batch(*BODIES)) for _ in range(3)])

    assert drawn[0] == drawn[1]
    assert {len(each) for each in drawn[0]} == {number}


def test_entries_are_chosen_by_a_text_in_their_body(stage: Stage) -> None:
    fault = stage.faults.fail_entries(
        "SendMessageBatch", containing='"o-17"', queue=stage.name, count=None
    )

    answer = stage.send_batch('{"id": "o-16"}', '{"id": "o-17"}', '{"id": "o-18"}')
    stage.send_batch('{"id": "o-19"}')

    assert [id_ for id_, _, _ in failed(answer)] == ["id-1"]
    assert fault.fired == 1


def test_entries_are_chosen_by_a_text_in_an_attribute(stage: Stage) -> None:
    stage.faults.fail_entries("SendMessageBatch", containing="order.paid", queue=stage.name)
    entries: list[Any] = [
        {
            "Id": kind.replace(".", "-"),
            "MessageBody": "x",
            "MessageAttributes": {"event_type": {"DataType": "String", "StringValue": kind}},
        }
        for kind in ("order.placed", "order.paid")
    ]

    answer: Any = stage.sqs.send_message_batch(QueueUrl=stage.url, Entries=entries)

    assert [id_ for id_, _, _ in failed(answer)] == ["order-paid"]


def test_a_batch_without_a_chosen_entry_is_not_hit(stage: Stage) -> None:
    fault = stage.faults.fail_entries("SendMessageBatch", entries=[4], queue=stage.name)

    assert failed(stage.send_batch("a", "b")) == []
    assert len(failed(stage.send_batch(*BODIES))) == 1

    assert fault.fired == 1


def test_a_batch_that_sqs_refuses_as_a_whole_is_still_refused(stage: Stage) -> None:
    fault = stage.faults.fail_entries("SendMessageBatch", queue=stage.name)
    entries: list[Any] = [{"Id": "same", "MessageBody": body} for body in "ab"]

    error = refused(
        lambda: stage.sqs.send_message_batch(QueueUrl=stage.url, Entries=entries),
    )

    assert type(error).__name__ == "BatchEntryIdsNotDistinct"
    assert fault.fired == 0


def test_what_fails_by_itself_fails_beside_the_fault(stage: Stage) -> None:
    stage.faults.fail_entries("SendMessageBatch", entries=[2], queue=stage.name)

    answer = stage.send_batch("a", "\x00", "c")

    assert failed(answer) == [
        ("id-1", "InvalidMessageContents", True),
        ("id-2", "InternalError", False),
    ]
    assert stage.bodies() == ["a"]


def test_a_missing_queue_is_told_before_any_entry(stage: Stage) -> None:
    stage.faults.fail_entries("SendMessageBatch", entries=[0], queue=stage.name)
    stage.sqs.delete_queue(QueueUrl=stage.url)

    assert type(refused(stage.send_batch, "a", "b")).__name__ == "QueueDoesNotExist"


@pytest.mark.parametrize("code", ["ReceiptHandleIsInvalid", "MessageNotInflight"])
def test_stale_receipts_of_a_batch_fail_one_by_one(stage: Stage, code: Any) -> None:
    stage.send("a", "b")
    messages = stage.receive()
    stage.faults.stale_receipt(
        "ChangeMessageVisibilityBatch", code=code, entries=[1], queue=stage.name
    )

    answer = stage.hide_batch(0, *messages)

    assert ids(answer["Successful"]) == ["id-0"]
    ((id_, told, blamed),) = failed(answer)
    assert (id_, told.rsplit(".", 1)[-1], blamed) == ("id-1", code, True)
    assert stage.depth() == (1, 1)


def test_stale_receipts_are_not_deleted(stage: Stage) -> None:
    stage.send("a", "b", "c")
    messages = stage.receive()
    stage.faults.stale_receipt("DeleteMessageBatch", entries=[0, 2], queue=stage.name)

    answer = stage.delete_batch(*messages)

    assert failed(answer) == [
        ("id-0", "ReceiptHandleIsInvalid", True),
        ("id-2", "ReceiptHandleIsInvalid", True),
    ]
    assert stage.depth() == (0, 2)


def test_swallowed_deletes_succeed_and_stay(stage: Stage) -> None:
    stage.send("a", "b", "c")
    messages = stage.receive()
    stage.faults.swallow("DeleteMessageBatch", entries=[1], queue=stage.name)

    answer = stage.delete_batch(*messages)

    assert (ids(answer["Successful"]), failed(answer)) == (["id-0", "id-1", "id-2"], [])
    assert stage.depth() == (0, 1)


def test_swallowed_extensions_let_the_lease_run_out(stage: Stage) -> None:
    stage.send("a")
    messages = stage.receive()
    stage.faults.swallow("ChangeMessageVisibilityBatch", queue=stage.name)

    assert failed(stage.hide_batch(600, *messages)) == []

    stage.aws.advance(60)
    assert stage.depth() == (1, 0)


def test_swallowed_sends_are_answered_in_full_and_in_order(stage: Stage) -> None:
    real = stage.send_batch(*BODIES)["Successful"]
    stage.faults.swallow("SendMessageBatch", entries=[0, 2], queue=stage.name)

    pretended = stage.send_batch(*BODIES)["Successful"]

    assert [(e["Id"], e["MD5OfMessageBody"]) for e in pretended] == [
        (e["Id"], e["MD5OfMessageBody"]) for e in real
    ]
    assert {frozenset(entry) for entry in pretended} == {frozenset(real[0])}
    assert stage.depth() == (8, 0)


def test_a_text_is_looked_for_in_what_is_sent_and_not_in_deduplication_ids(
    fifo_stage: Stage,
) -> None:
    """Programs make them of random ids, which hold any short text by chance."""
    fifo_stage.faults.fail_entries("SendMessageBatch", containing="a-1", queue=fifo_stage.name)

    answer = fifo_stage.sqs.send_message_batch(
        QueueUrl=fifo_stage.url,
        Entries=[
            {
                "Id": f"id-{number}",
                "MessageBody": f"a-{number}",
                "MessageGroupId": "a",
                "MessageDeduplicationId": f"redrive-0000000a-1000-4000-8000-00000000000{number}",
            }
            for number in range(3)
        ],
    )

    assert ids(answer["Failed"]) == ["id-1"]
