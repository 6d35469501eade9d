"""Queues may share a dead-letter queue: a letter goes back to its own queue, or nowhere."""

import json
from uuid import UUID

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.core.letter_filters import Selection
from outboxd.core.letters import write_letter
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter, DeadReason
from outboxd.core.redrive import read_letter
from tests.cli.conftest import Cli
from tests.cli.dlq_scene import Scene, a_letter, event_id, ids
from tests.cli.dlq_scene import aws as aws
from tests.cli.dlq_scene import faulty as faulty
from tests.cli.dlq_scene import scene as scene

PAYMENTS = """
[queues.payments]
dead_letter = "orders-dlq"
[[queues.payments.handlers]]
event = "*"
handler = "shop:book"
name = "book"
inbox = "off"
"""
LEFT = (
    "outboxd: 1 letter in orders-dlq came from other SQS queues than orders (payments) and stayed "
    "out of this: give the command their own queue, or --source if that was only renamed\n"
)


def a_payment(scene: Scene, number: int) -> str:
    """A letter that a pool of the other queue has written."""
    body = json.dumps({"id": event_id(number), "type": "payment.succeeded", "payload": {}})
    message = ReceivedMessage(
        message_id=f"payment-{number}", receipt_handle="", receive_count=1, sent_at=1.0, body=body
    )
    cause = DeadLetter(DeadReason.REJECTED, "no such order")
    return scene.send("orders-dlq", write_letter("payments", message, None, cause, [], 1.7e9))


def share(scene: Scene) -> None:
    scene.sqs.create_queue(QueueName="payments")
    file = scene.folder / "outboxd.toml"
    file.write_text(file.read_text() + PAYMENTS)


def test_a_redrive_sends_nothing_to_a_queue_that_it_did_not_come_from(
    cli: Cli, scene: Scene
) -> None:
    share(scene)
    scene.bury(1, 2)
    a_payment(scene, 3)

    assert cli("dlq", "redrive", "orders", "--yes") == (
        ExitCode.OK,
        "redriven: 2 dead letters from orders-dlq to orders\n",
        LEFT,
    )
    assert scene.where == ([1, 2], [3])

    assert cli("dlq", "redrive", "payments", "--yes").err == ""
    assert (scene.events("payments"), scene.where) == ([3], ([1, 2], []))


def test_one_that_sqs_moved_by_itself_is_known_by_where_it_was(cli: Cli, faulty: Scene) -> None:
    share(faulty)
    arn = "arn:aws:sqs:us-east-1:000000000000:orders-dlq"
    queue = faulty.sqs.get_queue_url(QueueName="payments")["QueueUrl"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
    faulty.sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": policy})
    body = json.dumps({"id": event_id(3), "type": "payment.succeeded", "payload": {}})
    faulty.sqs.send_message(QueueUrl=queue, MessageBody=body)
    for _ in range(2):
        faulty.sqs.receive_message(QueueUrl=queue, VisibilityTimeout=0)

    assert cli("dlq", "redrive", "orders", "--yes").err == LEFT
    assert cli("dlq", "redrive", "payments", "--yes").out.startswith("redriven: 1 dead letter")
    assert faulty.events("payments") == [3]


def test_a_purge_of_all_is_of_all_that_are_the_queues_own(cli: Cli, faulty: Scene) -> None:
    share(faulty)
    faulty.bury(1)
    a_payment(faulty, 3)

    assert cli("dlq", "purge", "orders", "--all", "--yes").err == LEFT
    assert faulty.events("orders-dlq") == [3]


@pytest.mark.parametrize("argv", [["list"], ["redrive", "--dry-run"], ["export"]])
def test_others_are_counted_and_not_shown(cli: Cli, faulty: Scene, argv: list[str]) -> None:
    share(faulty)
    (own,) = faulty.bury(1)
    a_payment(faulty, 3)

    action, *options = argv
    code, out, err = cli("dlq", action, "orders", *options, "--json")

    assert (code, err) == (ExitCode.OK, LEFT)
    told = json.loads(out)
    if action == "export":
        assert told["message_id"] == own
    else:
        assert ids(told["letters"]) == {own}
        assert told["of_other_queues"] == {"payments": 1}


def test_after_a_rename_letters_are_named_by_the_old_name(cli: Cli, faulty: Scene) -> None:
    faulty.sqs.create_queue(QueueName="orders-v2")
    faulty.configure(queue_name="orders-v2")
    file = faulty.folder / "outboxd.toml"
    queue = 'queue_name = "orders-v2"\ndead_letter = "orders-dlq"\n'
    file.write_text(file.read_text().replace('queue_name = "orders-v2"\n', queue))
    faulty.send("orders-dlq", a_letter(1))

    assert "--source if that was only renamed" in cli("dlq", "redrive", "orders", "--yes").err
    assert faulty.events("orders-v2") == []
    assert cli("dlq", "redrive", "orders", "--yes", "--source", "orders").err == ""
    assert (faulty.events("orders-v2"), faulty.events("orders-dlq")) == ([1], [])


def test_a_letter_of_which_nobody_knows_is_anybodys() -> None:
    body = json.dumps({"id": str(UUID(int=1)), "type": "order.paid", "payload": {}})
    message = ReceivedMessage(
        message_id="m", receipt_handle="", receive_count=1, sent_at=1.0, body=body
    )

    assert Selection.of(sources=["orders"]).wants(read_letter(message))
