"""One event's whole life is told from wherever there is a trace of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import boto3
import pytest

from outboxd.adapters.sqs.received import letter_entry
from outboxd.cli import where
from outboxd.core.envelopes import open_envelope
from outboxd.core.event_history import HandlerMark, Life, timeline
from outboxd.core.exit_codes import ExitCode
from outboxd.core.letters import write_letter
from outboxd.core.message_plan import DeadHandler
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outbox_standing import Row
from outboxd.core.outcomes import DeadLetter, DeadReason
from tests.cli.conftest import Cli, Ran
from tests.cli.outbox_scene import CONFIGURATION, Scene
from tests.emulators import localaws

HISTORY = UUID(int=7)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with localaws() as address:
        yield address


@pytest.fixture
def scene(cli: Cli, folder: Path, database: str, endpoint: str) -> Scene:
    aws = f'[aws]\nendpoint_url = "{endpoint}"\n'
    return Scene(cli, folder, database, aws + CONFIGURATION)


def bury(endpoint: str, event: UUID, message_id: str) -> None:
    """A dead letter of the event in the dead-letter queue, which is created."""
    sqs = boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1")
    sqs.create_queue(QueueName="orders-dlq")
    body = json.dumps({"id": str(event), "type": "order.placed", "payload": {}})
    message = ReceivedMessage(
        message_id=message_id, receipt_handle="r", body=body, attributes={}, receive_count=1,
        sent_at=1.0,
    )  # fmt: skip
    cause = DeadLetter(DeadReason.REJECTED, "no such customer")
    incoming = open_envelope(message)
    letter = write_letter(
        "orders", message, incoming, cause, [DeadHandler("ship", cause, 1)], 1_700_000_000.0
    )
    url = sqs.get_queue_url(QueueName="orders-dlq")["QueueUrl"]
    sqs.send_message_batch(QueueUrl=url, Entries=[letter_entry(0, letter)])


def asked(cli: Cli, event: object, *argv: str) -> Ran:
    return cli("where", str(event), *argv)


def test_an_event_is_followed_from_the_outbox_to_its_dead_letter(
    cli: Cli, scene: Scene, endpoint: str
) -> None:
    seq = scene.insert_one("42", published_at="now()", occurred_at="now() - interval '3 h'")
    (identity,) = scene.ids([seq])
    scene.ask("INSERT INTO processed_events (event_id, handler) VALUES (%s, 'count')", identity)
    scene.ask(
        "INSERT INTO handler_failures"
        " (event_id, handler, message_id, attempts, last_error, dead_at)"
        " VALUES (%s, 'ship', 'm-1', 5, 'no such customer', now())",
        identity,
    )
    scene.ask(
        "INSERT INTO suspects (queue, message_id, crashes_alone, reason)"
        " VALUES ('orders', 'm-1', 1, 'crash'), ('orders', 'm-2', 0, 'crash')"
    )
    bury(endpoint, UUID(identity), "m-1")

    code, out, err = asked(cli, identity)
    told = json.loads(asked(cli, identity, "--json").out)

    assert (code, err) == (ExitCode.OK, "")
    assert f"3 h ago  inserted into the outbox as {seq}" in out
    assert "published: every destination has accepted it" in out
    assert "handler count is done" in out
    assert "handler ship gave it up, 5 attempts with message m-1" in out
    assert "a process of orders died with its message m-1 in work, 1 x alone" in out
    assert "in orders-dlq: rejected" in out
    assert f"`outboxd dlq redrive orders --id {identity}` sends it back" in out
    assert [len(told[place]) for place in ("outbox", "done", "failures", "letters")] == [1] * 4
    assert [each["message_id"] for each in told["suspected"]] == ["m-1"]
    assert told["letters"][0]["handlers"] == ["ship"]


def test_an_event_of_which_nothing_is_known_is_1(cli: Cli, scene: Scene, endpoint: str) -> None:
    bury(endpoint, uuid4(), "m-1")

    code, out, err = asked(cli, uuid4())

    assert (code, err) == (ExitCode.UNEXPECTED, "")
    assert out.endswith("nothing is known of it\n")


def test_a_queue_that_cannot_be_asked_is_told_and_the_rest_is_shown(cli: Cli, scene: Scene) -> None:
    seq = scene.insert_one("42")
    (identity,) = scene.ids([seq])

    code, out, err = asked(cli, identity)

    assert code == ExitCode.OK
    assert "in the outbox, pending: nothing in the outbox stands in its way" in out
    assert "orders-dlq was not looked through: " in err


def test_without_queues_aws_is_not_asked(
    cli: Cli, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, "_letters", None)
    (identity,) = scene.ids([scene.insert_one("42")])

    assert asked(cli, identity, "--no-queues").err == ""


def test_a_queue_that_is_too_long_is_looked_through_for_a_while(
    cli: Cli, scene: Scene, endpoint: str
) -> None:
    event = uuid4()
    for _ in range(3):
        bury(endpoint, event, "m-1")

    code, _, err = asked(cli, event, "--scan-seconds", "0.000001")

    assert code == ExitCode.UNEXPECTED
    assert "orders-dlq was looked through for 1e-06 s, not to its end" in err


def test_without_a_database_the_queues_are_asked(cli: Cli, folder: Path, endpoint: str) -> None:
    (folder / "outboxd.toml").write_text(
        f"""
        [aws]
        endpoint_url = "{endpoint}"
        [queues.orders]
        [[queues.orders.handlers]]
        event = "*"
        handler = "shop:ship"
        name = "ship"
        inbox = "off"
        """
    )
    event = uuid4()
    bury(endpoint, event, "m-1")

    code, out, err = asked(cli, event)

    assert code == ExitCode.OK
    assert "a dead letter of orders (rejected)" in out
    assert "there is no [database] to ask" in err


def test_a_letter_in_a_shared_queue_is_of_the_queue_that_it_came_from(
    cli: Cli, folder: Path, endpoint: str
) -> None:
    queue = """
        [queues.{name}]
        dead_letter = "orders-dlq"
        [[queues.{name}.handlers]]
        event = "*"
        handler = "shop:ship"
        name = "{name}"
        inbox = "off"
        """
    shared = "".join(queue.format(name=name) for name in ("orders", "payments"))
    (folder / "outboxd.toml").write_text(f'[aws]\nendpoint_url = "{endpoint}"\n{shared}')
    event = uuid4()
    bury(endpoint, event, "m-1")

    assert f"`outboxd dlq redrive orders --id {event}`" in asked(cli, event).out


def test_an_id_that_is_no_uuid_is_a_usage_error(cli: Cli) -> None:
    code, _, err = asked(cli, "42")

    assert code == ExitCode.USAGE
    assert "'42' is no UUID" in err


def test_what_happened_is_told_in_order_of_time() -> None:
    row = Row(1, "id", "t", "order", "1", occurred_at=5.0, dead_at=9.0, last_error="refused")
    life = Life(rows=[row], marks=[HandlerMark("h", 7.0)])

    assert [moment.at for moment in timeline(life)] == [5.0, 7.0, 9.0]
    assert timeline(life)[-1].detail == "refused"
    assert life.known
    assert not Life(unasked=["a queue"]).known
