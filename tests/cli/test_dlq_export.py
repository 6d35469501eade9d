"""An export holds what it takes to send each letter again, and one letter can be seen whole."""

import base64
import json
import stat
from pathlib import Path
from typing import Any

import psycopg
import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.core.letters import Letter
from outboxd.core.messages import Attribute
from outboxd.core.redrive import REDRIVEN
from outboxd.testing import LocalAws
from tests.cli.conftest import Cli
from tests.cli.dlq_scene import ERROR, Scene, a_letter, event_id, ids
from tests.cli.dlq_scene import aws as aws
from tests.cli.dlq_scene import faulty as faulty
from tests.cli.dlq_scene import scene as scene


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_export_is_a_line_for_each_letter_and_deletes_nothing(
    cli: Cli, scene: Scene, folder: Path
) -> None:
    letters = scene.bury(*range(23))

    code, out, err = cli("dlq", "export", "orders", "--to", "letters.ndjson", "--json")

    assert (code, err) == (ExitCode.OK, "")
    assert json.loads(out)["exported"] == 23
    assert ids(lines((folder / "letters.ndjson").read_text())) == set(letters)
    assert scene.where == ([], list(range(23)))


def test_a_line_is_enough_to_send_its_letter_again(cli: Cli, faulty: Scene) -> None:
    letter = a_letter(7)
    bytes_too = {**letter.attributes, "signature": Attribute("Binary", b"\0\xff")}
    faulty.send("orders-dlq", Letter(letter.body, bytes_too))

    (line,) = lines(cli("dlq", "export", "orders", "--id", event_id(7)).out)

    assert (line["reason"], line["error"], line["queue"]) == ("rejected", ERROR, "orders")
    sent = line["send"]
    signature = sent["MessageAttributes"]["signature"]
    signature["BinaryValue"] = base64.b64decode(signature["BinaryValue"])  # as the AWS CLI does
    url = faulty.sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    faulty.sqs.send_message(QueueUrl=url, **sent)
    (message,) = faulty.messages("orders")
    assert message["Body"] == letter.body
    attributes = message["MessageAttributes"]
    assert set(attributes) == {"event_type", "signature", REDRIVEN}
    assert attributes["signature"]["BinaryValue"] == b"\0\xff"


def test_a_file_is_for_its_owner_only_and_never_written_over(
    cli: Cli, faulty: Scene, folder: Path
) -> None:
    faulty.bury(1, 2)
    export = ("dlq", "export", "orders", "--to", "letters.ndjson")

    assert cli(*export).out == "exported: 2 dead letters of orders-dlq to letters.ndjson\n"
    file = folder / "letters.ndjson"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_text()
    assert len(lines(before)) == 2

    code, out, err = cli(*export, "--json")
    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err == "outboxd: letters.ndjson cannot be made: File exists; nothing was done\n"
    assert file.read_text() == before


def test_an_outage_in_the_middle_is_told(cli: Cli, faulty: Scene, aws: LocalAws) -> None:
    faulty.bury(*range(15))
    aws.faults.throttle("ReceiveMessage", skip=1, count=None)

    code, out, err = cli("dlq", "export", "orders")

    assert code == ExitCode.UNEXPECTED
    assert len(lines(out)) == 10
    assert "throttled" in err


def test_a_letter_is_shown_whole_without_its_body(cli: Cli, faulty: Scene) -> None:
    (id,) = faulty.bury(7)

    code, out, err = cli("dlq", "show", "orders", event_id(7))

    assert (code, err) == (ExitCode.OK, "")
    assert out.startswith(f"{id}  order.paid\n")
    assert "    handler   ship, 3 attempts, rejected\n" in out
    assert "    error     Reject: no such customer\n" + " " * 14 + "?[2J" + "x" * 500 in out
    assert "    attribute event_type (String): order.paid\n" in out
    assert out.endswith("bytes; --body shows it\n")
    assert "payload" not in out


def test_a_body_is_shown_when_it_is_asked_for(cli: Cli, faulty: Scene) -> None:
    faulty.bury(7, 8)
    show = ("dlq", "show", "orders", event_id(7))

    assert '"payload": {}' in cli(*show, "--body").out
    assert '"payload": {}' in cli("dlq", "list", "orders", "--body").out
    (letter,) = json.loads(cli(*show, "--json").out)["letters"]
    assert "body" not in letter
    (letter,) = json.loads(cli(*show, "--json", "--body").out)["letters"]
    assert letter["body"] == a_letter(7).body


def test_a_letter_that_is_not_there_is_named(cli: Cli, faulty: Scene) -> None:
    code, out, err = cli("dlq", "show", "orders", "nobody")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert "no letter in orders-dlq has the message id or event id nobody; " in err


def mark(database: str, number: int, handler: str = "ship") -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO outboxd.processed_events (event_id, handler) VALUES (%s, %s)",
            [event_id(number), handler],
        )


@pytest.mark.parametrize("inbox", ["transaction", "off"])
def test_what_the_inbox_has_processed_is_told(
    cli: Cli, faulty: Scene, database: str, inbox: str
) -> None:
    """Without an inbox a handler runs again, though it has left a mark before."""
    faulty.configure(f'[database]\nurl = "{database}"', inbox=inbox)
    idle = inbox != "off"
    faulty.bury(1, 2, 3)
    mark(database, 2)
    mark(database, 3, handler="of another queue")

    told = json.loads(cli("dlq", "list", "orders", "--json").out)["letters"]
    known = {e["event_id"]: (e["processed_by"], e["nothing_left"]) for e in told}
    assert known == {
        event_id(1): ([], False),
        event_id(2): (["ship"], idle),
        event_id(3): ([], False),
    }
    shown = cli("dlq", "show", "orders", event_id(2)).out
    assert "    processed by ship before" in shown
    assert ("; a redrive changes nothing" in shown) is idle

    code, out, _ = cli("dlq", "redrive", "orders", "--yes")
    assert code == ExitCode.OK
    assert ("of them processed before, by all their handlers: 1\n" in out) is idle


@pytest.mark.parametrize("action", [["list"], ["redrive", "--yes"]])
def test_without_a_database_that_answers_the_work_goes_on(
    cli: Cli, faulty: Scene, unused_port: int, action: list[str]
) -> None:
    faulty.configure(f'[database]\nurl = "postgresql://127.0.0.1:{unused_port}/shop"')
    faulty.bury(1)

    code, out, err = cli("dlq", *action, "orders", "--json")

    assert code == ExitCode.OK
    assert err.startswith("outboxd: which events were processed already is not known: ")
    told = json.loads(out)
    (letter,) = told["letters"] if action == ["list"] else told["redriven"]
    assert letter["processed_by"] is None
