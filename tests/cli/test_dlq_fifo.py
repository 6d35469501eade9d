"""Dead letters of FIFO queues: all of them are shown, and they go back in order, once."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import boto3
import pytest

from outboxd.adapters.configuration import load_settings
from outboxd.adapters.sqs.dead_letters import dead_letters
from outboxd.adapters.sqs.letter_moves import BEHIND_ANOTHER
from outboxd.adapters.sqs.letter_reports import Report
from outboxd.adapters.sqs.received import letter_entry
from outboxd.core.exit_codes import ExitCode
from outboxd.core.letter_filters import Selection
from outboxd.core.letters import write_letter
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter, DeadReason
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here
from tests.cli.conftest import Cli

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

CONFIGURATION = """
[aws]
endpoint_url = "{endpoint}"
[queues.orders]
queue_name = "orders.fifo"
[[queues.orders.handlers]]
event = "*"
handler = "shop:ship"
name = "ship"
inbox = "off"
"""

QUEUE, LETTERS = "orders.fifo", "orders-dlq.fifo"
FIFO = {"FifoQueue": "true", "DeduplicationScope": "messageGroup"}
REDRIVE = ("dlq", "redrive", "orders", "--yes")


class Scene:
    """A FIFO queue and its dead letters, whose bodies are "<group>-<number>"."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        self.folder = folder
        self.sqs: SQSClient = boto3.client(
            "sqs",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        for name in (QUEUE, LETTERS):
            self.sqs.create_queue(QueueName=name, Attributes=FIFO)  # type: ignore[arg-type]
        (folder / "outboxd.toml").write_text(CONFIGURATION.format(endpoint=endpoint))

    def send_event(self, body: str, deduplication_id: str) -> str:
        """A message as the relay sends it; its id."""
        answer = self.sqs.send_message(
            QueueUrl=self.url(QUEUE),
            MessageBody=body,
            MessageGroupId=body.partition("-")[0],
            MessageDeduplicationId=deduplication_id,
        )
        return answer["MessageId"]

    def bury(
        self,
        *bodies: str,
        reason: DeadReason = DeadReason.REJECTED,
        message_id: str | None = None,
    ) -> list[str]:
        """Letters as the consumer writes them; their ids."""
        return [self._bury(body, reason, message_id or f"original-{body}") for body in bodies]

    def _bury(self, body: str, reason: DeadReason, message_id: str) -> str:
        message = ReceivedMessage(
            message_id=message_id,
            receipt_handle="",
            receive_count=1,
            sent_at=1.7e9,
            body=body,
            group_id=body.partition("-")[0],
        )
        letter = write_letter(QUEUE, message, None, DeadLetter(reason), [], 1.7e9)
        answer = self.sqs.send_message_batch(
            QueueUrl=self.url(LETTERS), Entries=[letter_entry(0, letter)]
        )
        assert not answer.get("Failed")
        return answer["Successful"][0]["MessageId"]

    def url(self, queue: str) -> str:
        return self.sqs.get_queue_url(QueueName=queue)["QueueUrl"]

    def peek(self, queue: str) -> list[tuple[str, str]]:
        """Ids and bodies of up to ten messages, which stay visible."""
        url = self.url(queue)
        messages = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get(
            "Messages", []
        )
        for message in messages:
            self.sqs.change_message_visibility(
                QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )
        return [(message["MessageId"], message["Body"]) for message in messages]

    def take(self, queue: str) -> list[Any]:
        """All that can be received, deleted as it comes, so that no group is locked."""
        found: list[Any] = []
        url = self.url(queue)
        while messages := self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["MessageGroupId", "MessageDeduplicationId"],
        ).get("Messages"):
            found += messages
            for message in messages:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    def bodies(self, queue: str) -> dict[str, list[str]]:
        """What a queue held, by group, in order; it is empty then."""
        groups: dict[str, list[str]] = {}
        for message in self.take(queue):
            groups.setdefault(message["Attributes"]["MessageGroupId"], []).append(message["Body"])
        return groups


@pytest.fixture
def scene(aws_endpoint: str, folder: Path) -> Iterator[Scene]:
    """On each of the servers that there are."""
    scene = Scene(aws_endpoint, folder)
    yield scene
    scene.sqs.close()


@pytest.fixture
def faulty(aws: LocalAws, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """On our own server, which fails on cue."""
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("outboxd.adapters.sqs.letter_scan.WAIT_SECONDS", 0)
    scene = Scene(aws.endpoint_url, folder)
    yield scene
    scene.sqs.close()


def of(group: str, number: int) -> list[str]:
    return [f"{group}-{n:02}" for n in range(number)]


def listed(cli: Cli) -> list[str]:
    code, out, _ = cli("dlq", "list", "orders", "--json", "--body")
    assert code == ExitCode.OK
    return [letter["body"] for letter in json.loads(out)["letters"]]


def interleaved(groups: Sequence[list[str]]) -> list[str]:
    longest = max(map(len, groups))
    return [group[n] for n in range(longest) for group in groups if n < len(group)]


def test_a_list_shows_all_letters_also_those_behind_others(cli: Cli, scene: Scene) -> None:
    """A receive of ten locks every group in it, though it need not hold all of any."""
    groups = [of("a", 7), of("b", 9), of("c", 1), of("d", 8)]
    scene.bury(*interleaved(groups))

    assert sorted(listed(cli)) == sorted(chain(*groups))
    assert sorted(listed(cli)) == sorted(chain(*groups)), "all were given back"


def test_many_small_groups_are_looked_through_in_bulk(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury(*(f"g{n}-0" for n in range(60)))
    aws.reset_calls()

    assert len(listed(cli)) == 60
    assert aws.calls("ReceiveMessage") < 20


def test_a_group_of_more_than_ten_is_told(cli: Cli, faulty: Scene) -> None:
    faulty.bury(*of("a", 12), *of("b", 2))

    code, out, err = cli("dlq", "list", "orders")

    assert code == ExitCode.OK
    assert "12 dead letters in orders-dlq.fifo; " in out
    assert "    group     a\n" in out
    assert err == (
        "outboxd: of message group a there may be more letters: SQS shows ten of a group at the "
        "most, and those behind them once they are redriven or deleted\n"
    )
    assert json.loads(cli("dlq", "list", "orders", "--json").out)["cut_groups"] == ["a"]


def test_a_redrive_keeps_groups_and_the_order_within_each(cli: Cli, scene: Scene) -> None:
    groups = [of("a", 13), of("b", 5), of("c", 24)]
    scene.bury(*interleaved(groups))

    code, out, err = cli(*REDRIVE)

    assert (code, err) == (ExitCode.OK, "")
    assert out == f"redriven: 42 dead letters from {LETTERS} to {QUEUE}\n"
    assert scene.bodies(QUEUE) == {group[0][0]: group for group in groups}
    assert scene.bodies(LETTERS) == {}


def test_a_redrive_at_once_is_not_swallowed_nor_is_the_next(cli: Cli, scene: Scene) -> None:
    """Deduplication looks back five minutes, also on what has been deleted since."""
    message_id = scene.send_event("a-0", deduplication_id="event-1")
    for _ in range(3):
        assert [m["MessageId"] for m in scene.take(QUEUE)] == [message_id]
        scene.bury("a-0", message_id=message_id)

        assert cli(*REDRIVE).code == ExitCode.OK
        ((message_id, body),) = scene.peek(QUEUE)
        assert body == "a-0"
        assert scene.bodies(LETTERS) == {}


def test_a_letter_that_is_buried_again_after_a_crash_is_one_letter(cli: Cli, faulty: Scene) -> None:
    faulty.bury("a-0", message_id="m1")
    faulty.bury("a-0", message_id="m1")

    assert listed(cli) == ["a-0"]


def test_a_letter_that_was_sent_but_not_deleted_is_not_doubled_by_the_next_redrive(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury("a-0", "a-1")
    denied = aws.faults.access_denied("DeleteMessageBatch", queue=LETTERS, count=None)
    assert cli(*REDRIVE).code == ExitCode.UNEXPECTED
    denied.clear()

    assert cli(*REDRIVE).code == ExitCode.OK
    assert faulty.bodies(LETTERS) == {}
    assert faulty.bodies(QUEUE) == {"a": ["a-0", "a-1"]}


def test_a_send_whose_answer_is_lost_is_not_doubled_by_the_next_redrive(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury("a-0", "b-0", "a-1")
    aws.faults.reset("SendMessageBatch", queue=QUEUE, when="after")

    code, _, err = cli(*REDRIVE)

    assert code == ExitCode.UNEXPECTED
    assert err.count("not confirmed, so still in orders-dlq.fifo") == 3
    assert cli(*REDRIVE).code == ExitCode.OK
    assert faulty.bodies(QUEUE) == {"a": ["a-0", "a-1"], "b": ["b-0"]}


def test_behind_a_letter_that_cannot_be_sent_its_group_stays_and_others_go(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury("a-0", "a-1", "b-0", "a-2", "b-1")
    aws.faults.fail_entries("SendMessageBatch", queue=QUEUE, containing="a-1")

    code, out, err = cli(*REDRIVE, "--json")

    assert code == ExitCode.UNEXPECTED
    assert len(json.loads(out)["failed"]) == 2
    assert BEHIND_ANOTHER in err
    assert faulty.bodies(QUEUE) == {"a": ["a-0"], "b": ["b-0", "b-1"]}
    assert faulty.bodies(LETTERS) == {"a": ["a-1", "a-2"]}


@pytest.mark.parametrize("number", [3, 9])
def test_a_chosen_letter_is_found_behind_others_that_are_not(
    cli: Cli, scene: Scene, number: int
) -> None:
    groups = [of("a", 10), of("b", 10), of("c", 10)]
    letters = dict(zip(chain(*groups), scene.bury(*chain(*groups)), strict=True))

    assert cli(*REDRIVE, "--id", letters[f"b-{number:02}"]).code == ExitCode.OK
    assert scene.bodies(QUEUE) == {"b": [f"b-{number:02}"]}
    left = scene.bodies(LETTERS)
    assert left["b"] == [body for body in groups[1] if body != f"b-{number:02}"]
    assert (left["a"], left["c"]) == (groups[0], groups[2])


def test_letters_that_are_chosen_by_reason_go_from_all_of_a_group(cli: Cli, faulty: Scene) -> None:
    faulty.bury(*(f"a-{n:02}" for n in range(4)))
    faulty.bury(*(f"a-{n:02}" for n in range(4, 20)), reason=DeadReason.MAX_ATTEMPTS)
    faulty.bury(*of("b", 3))

    assert cli(*REDRIVE, "--reason", "max_attempts").code == ExitCode.OK
    assert faulty.bodies(QUEUE) == {"a": [f"a-{n:02}" for n in range(4, 20)]}
    assert faulty.bodies(LETTERS) == {"a": of("a", 4), "b": of("b", 3)}


def test_letters_behind_ten_that_are_not_chosen_are_told_to_be_out_of_sight(
    cli: Cli, faulty: Scene
) -> None:
    letters = faulty.bury(*of("a", 12))

    code, _, err = cli(*REDRIVE, "--id", letters[11])

    assert code == ExitCode.UNEXPECTED
    assert "of message group a there may be more letters" in err
    assert f"has the message id or event id {letters[11]}" in err
    assert faulty.bodies(LETTERS) == {"a": of("a", 12)}


def test_a_group_that_stays_stays_also_when_its_letters_are_visible_again(
    faulty: Scene, aws: LocalAws
) -> None:
    """The failed one comes back after its visibility timeout, in a full receive, and the next."""
    faulty.bury(*of("a", 2), *of("b", 8), *of("a", 4)[2:], *of("c", 12))
    aws.faults.fail_entries("SendMessageBatch", queue=QUEUE, containing="a-01")

    report = redrive(faulty, lambda report: aws.advance(200))

    assert {failure.error for failure in report.failed} >= {BEHIND_ANOTHER}
    assert faulty.bodies(QUEUE) == {"a": ["a-00"], "b": of("b", 8), "c": of("c", 12)}
    assert faulty.bodies(LETTERS) == {"a": ["a-01", "a-02", "a-03"]}


def redrive(scene: Scene, told: Callable[[Report], None]) -> Report:
    settings = load_settings(scene.folder / "outboxd.toml", os.environ)
    with dead_letters(settings, "orders", redriving=True, stopping=lambda: False) as letters:
        return anyio.run(letters.redrive, Selection(), None, told)
