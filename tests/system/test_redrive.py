"""Dead letters go back to the daemon once the reason for their death is gone."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pytest

from outboxd.adapters.sqs.client import sqs_client
from outboxd.adapters.sqs.dead_letters import WORKING_SECONDS
from outboxd.adapters.sqs.received import letter_entry
from outboxd.cli.main import main
from outboxd.core.envelopes import open_envelope
from outboxd.core.letters import write_letter
from outboxd.core.message_plan import DeadHandler
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter, DeadReason
from outboxd.demo.queues import Queues
from outboxd.ports.queue import BATCH
from outboxd.testing import LocalAws
from tests.system.scene import Scene, encoded, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

REGISTER = """
[[queues.work.handlers]]
event = "customer.seen"
handler = "customers:register"
name = "register"
inbox = "transaction"
"""


def dead_letters(scene: Scene) -> int:
    """Counted, not received: a receive would hide them."""
    return Queues(scene.settings).dead_letters()["work"].visible


def test_a_rejected_event_is_handled_once_when_it_is_redriven_after_the_fix(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.configure(REGISTER, handler("note", event="customer.seen"))
    with scene.database() as connection:
        connection.execute("CREATE TABLE public.customers (name text)")
    ids = scene.publish("customer.seen", name="Ada")
    command = ["--config", str(scene.configuration)]

    with scene.daemon():
        eventually(lambda: dead_letters(scene) == 1 and scene.messages_left() == 0)
        assert (scene.effects("register"), scene.effects("note")) == ([], ids)
        capsys.readouterr()
        assert main(["dlq", "list", "work", "--json", *command]) == 0
        (letter,) = json.loads(capsys.readouterr().out)["letters"]
        assert (letter["event_id"], letter["reason"]) == (ids[0], "rejected")
        assert "no such customer: Ada" in letter["error"]

        with scene.database() as connection:
            connection.execute("INSERT INTO public.customers VALUES ('Ada')")
        assert main(["dlq", "redrive", "work", "--yes", "--id", ids[0], *command]) == 0
        eventually(lambda: scene.effects("register") == ids and scene.messages_left() == 0)

    assert scene.effects("register") == ids
    assert scene.effects("note") == ids, "what had taken effect does not do so again"
    assert scene.letters() == []


def test_a_redrive_before_the_fix_ends_although_its_letters_come_back(scene: Scene) -> None:
    scene.configure(REGISTER)
    with scene.database() as connection:
        connection.execute("CREATE TABLE public.customers (name text)")
    scene.publish("customer.seen", 30, name="Ada")

    with scene.daemon():
        eventually(lambda: dead_letters(scene) == 30)
        redrive = ["dlq", "redrive", "work", "--yes", "--config", str(scene.configuration)]
        assert main(redrive) == 0
        eventually(lambda: dead_letters(scene) == 30 and scene.messages_left() == 0)

    assert scene.effects("register") == []


class Kill(NamedTuple):
    """When a redrive is killed: while this call hangs, before or after SQS has carried it out."""

    operation: str
    when: Literal["before", "after"]
    skip: int


KILLS = (
    Kill("DeleteMessageBatch", "before", skip=15),
    Kill("SendMessageBatch", "after", skip=9),
    Kill("SendMessageBatch", "before", skip=5),
    Kill("ReceiveMessage", "after", skip=30),
)

WANTED = ("note.wanted", DeadReason.REJECTED)
KINDS = (
    *[WANTED] * 2,
    ("note.wanted", DeadReason.MAX_ATTEMPTS),
    ("other.wanted", DeadReason.REJECTED),
)
FILTER = ["--type", "note.*", "--reason", "rejected", "--handler", "note", "--older-than", "0s"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("fifo", [False, True])
def test_a_redrive_by_filter_that_is_killed_and_repeated_loses_and_doubles_nothing(
    scene: Scene, fifo: bool
) -> None:
    scene.configure(handler("note"), fifo=fifo)
    chosen = bury(scene, 1000)
    before = export(scene, "before")
    aws = LocalAws(scene.endpoint)

    for kill in KILLS:
        queue = "work*" if kill.operation == "SendMessageBatch" else "work-dlq*"
        with (
            aws.faults.hang(kill.operation, when=kill.when, skip=kill.skip, queue=queue) as hanging,
            redriving(scene) as redrive,
        ):
            hanging.wait_until_fired(timeout_seconds=30)
            redrive.kill()
        # What it had in hand is hidden until its time is over.
        aws.advance(WORKING_SECONDS + 1)
    with redriving(scene) as redrive:
        assert redrive.wait(60) == 0

    extra = scene.visible() - len(chosen)
    assert 0 <= extra <= BATCH * len(KILLS), "what a FIFO queue has had for five minutes, it takes"
    assert fifo or extra > 0, "no kill was between a send and its delete"
    assert export(scene, "after") == {
        id: line for id, line in before.items() if line["event_id"] not in chosen
    }
    with scene.daemon():
        eventually(lambda: scene.messages_left() == 0)
    assert Counter(scene.effects("note")) == Counter(chosen), "once each, and no other one"
    assert export(scene, "in the end").keys() == export(scene, "at last").keys()
    assert dead_letters(scene) == 500


@contextmanager
def redriving(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a process of its own, which is gone at the end."""
    command = [sys.executable, "-P", "-m", "outboxd.cli.main", "dlq", "redrive", "work", "--yes"]
    process = subprocess.Popen([*command, *FILTER, "--config", str(scene.configuration)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def bury(scene: Scene, number: int) -> list[str]:
    """Letters of all kinds, mixed, in many groups; the ids of the events that are wanted."""
    queue = scene.settings.sqs_queue_name("work")
    letters = []
    for n in range(number):
        type, reason = KINDS[n % len(KINDS)]
        message = ReceivedMessage(
            message_id=f"original-{n}",
            receipt_handle="",
            receive_count=1,
            sent_at=1.7e9,
            body=encoded(id=str(UUID(int=n)), type=type, payload={}),
            group_id=f"g{n // 4 % (number // 8)}" if queue.endswith(".fifo") else None,
        )
        cause = DeadLetter(reason, "Reject: no such customer")
        dead = [DeadHandler("note", cause, 1)]
        letters.append(write_letter(queue, message, open_envelope(message), cause, dead, 1.7e9))
    with closing(sqs_client(scene.settings.aws, connections=1)) as client:
        url = client.get_queue_url(QueueName=scene.settings.dead_letter_name("work"))["QueueUrl"]
        for start in range(0, number, BATCH):
            batch = letters[start : start + BATCH]
            entries = [letter_entry(index, letter) for index, letter in enumerate(batch)]
            assert "Failed" not in client.send_message_batch(QueueUrl=url, Entries=entries)
    return [str(UUID(int=n)) for n in range(number) if KINDS[n % len(KINDS)] == WANTED]


def export(scene: Scene, name: str) -> dict[str, dict[str, Any]]:
    """All letters by their ids, as they are, without what changes by looking."""
    path = Path(scene.directory, f"{name}.ndjson")
    command = ["dlq", "export", "work", "--to", str(path)]
    assert main([*command, "--config", str(scene.configuration)]) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for changing in ("age_seconds", "seconds_left", "receive_count"):
            del line[changing]
    return {line["message_id"]: line for line in lines}
