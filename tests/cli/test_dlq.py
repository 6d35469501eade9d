"""Dead letters are shown and go back, and none is lost whatever fails on the way."""

import json
import os
import signal
import threading

import anyio
import pytest

from outboxd.adapters.configuration import load_settings
from outboxd.adapters.sqs.dead_letters import dead_letters
from outboxd.adapters.sqs.letter_reports import Report
from outboxd.cli.long_work import progress_line
from outboxd.cli.main import INTERRUPTED
from outboxd.core.exit_codes import ExitCode
from outboxd.core.letter_filters import Selection
from outboxd.core.letters import Letter
from outboxd.core.messages import Attribute
from outboxd.core.outcomes import DeadReason
from outboxd.core.redrive import REDRIVEN
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here
from tests.cli.conftest import Cli
from tests.cli.dlq_scene import ERROR, Scene, a_letter, event_id, ids
from tests.cli.dlq_scene import faulty as faulty
from tests.cli.dlq_scene import scene as scene


def test_a_list_tells_why_each_letter_is_dead(cli: Cli, faulty: Scene) -> None:
    (id,) = faulty.bury(7)

    code, out, err = cli("dlq", "list", "orders")

    assert (code, err) == (ExitCode.OK, "")
    first, *middle, age, last = out.splitlines()
    assert first == f"{id}  order.paid"
    assert middle[:3] == [
        f"    event     {event_id(7)}",
        "    reason    rejected",
        "    handler   ship, 3 attempts",
    ]
    assert middle[3].startswith("    error     Reject: no such customer ?[2Jxxx")
    assert len(middle[3]) < 220
    assert " left" in age
    assert last == "1 dead letter in orders-dlq; looking counts as a receive of each"


def test_a_list_for_programs_holds_everything(cli: Cli, scene: Scene) -> None:
    (id,) = scene.bury(7)

    code, out, _ = cli("dlq", "list", "orders", "--json", "--body")

    assert code == ExitCode.OK
    told = json.loads(out)
    assert told["dead_letter_queue"] == "orders-dlq"
    (letter,) = told["letters"]
    assert (letter["message_id"], letter["event_id"]) == (id, event_id(7))
    assert letter["original"]["message_id"] == "original-7"
    assert letter["error"] == ERROR
    assert letter["handlers"][0]["attempts"] == 3
    assert letter["attributes"]["event_type"] == {"type": "String", "value": "order.paid"}
    assert json.loads(letter["body"])["id"] == event_id(7)
    assert 0 < letter["seconds_left"] <= 14 * 86_400


def test_a_list_leaves_every_letter_visible(cli: Cli, scene: Scene) -> None:
    letters = set(scene.bury(*range(23)))

    first = json.loads(cli("dlq", "list", "orders", "--json").out)
    second = json.loads(cli("dlq", "list", "orders", "--json").out)

    assert ids(first["letters"]) == ids(second["letters"]) == letters
    assert scene.events("orders-dlq") == list(range(23))


def test_a_list_is_bounded_and_says_so(cli: Cli, faulty: Scene) -> None:
    faulty.bury(1, 2, 3)

    _, out, _ = cli("dlq", "list", "orders", "--limit", "2")

    assert out.splitlines()[-1] == (
        "2 dead letters in orders-dlq, the first of about 3; looking counts as a receive of each"
    )
    assert faulty.events("orders-dlq") == [1, 2, 3]


def test_an_empty_queue_is_listed(cli: Cli, faulty: Scene) -> None:
    assert cli("dlq", "list", "orders") == (0, "no dead letters in orders-dlq\n", "")


def test_a_letter_that_sqs_moved_is_called_so(cli: Cli, faulty: Scene) -> None:
    faulty.send("orders-dlq", Letter(a_letter(7).body, {}))

    _, out, _ = cli("dlq", "list", "orders")

    assert f"    event     {event_id(7)}\n" in out
    assert "    reason    max_receives (as a rule moved by SQS, which says no more)\n" in out


def test_a_redrive_brings_everything_back_as_it_was(cli: Cli, scene: Scene) -> None:
    scene.bury(*range(23))

    code, out, err = cli("dlq", "redrive", "orders", "--yes")

    assert (code, err) == (ExitCode.OK, "")
    assert out == "redriven: 23 dead letters from orders-dlq to orders\n"
    assert scene.where == (list(range(23)), [])
    for message in scene.messages("orders"):
        assert set(message["MessageAttributes"]) == {"event_type", REDRIVEN}
        assert message["MessageAttributes"][REDRIVEN]["StringValue"] == "1"


@pytest.mark.parametrize("case", ["letter", "original", "event"])
def test_a_letter_is_chosen_by_any_of_its_ids(cli: Cli, scene: Scene, case: str) -> None:
    letters = scene.bury(1, 2, 3)
    id = {"letter": letters[1], "original": "original-2", "event": event_id(2)}[case]

    code, out, _ = cli("dlq", "redrive", "orders", "--yes", "--id", id, "--json")

    assert code == ExitCode.OK
    assert ids(json.loads(out)["redriven"]) == {letters[1]}
    assert scene.where == ([2], [1, 3])


def test_letters_are_chosen_by_reason_and_bounded(cli: Cli, faulty: Scene) -> None:
    faulty.bury(1, 2)
    faulty.bury(3, 4, 5, reason=DeadReason.MAX_ATTEMPTS)
    chosen = ("dlq", "redrive", "orders", "--yes", "--reason", "max_attempts")

    assert cli(*chosen, "--limit", "2").code == ExitCode.OK
    back, left = faulty.where
    assert len(back) == 2
    assert set(back) < {3, 4, 5}
    assert {1, 2} < set(left)

    assert cli(*chosen).code == ExitCode.OK
    assert faulty.where == ([3, 4, 5], [1, 2])


def test_a_dry_run_shows_which_and_moves_nothing(cli: Cli, faulty: Scene) -> None:
    letters = faulty.bury(1, 2, 3)

    code, out, _ = cli("dlq", "redrive", "orders", "--dry-run", "--json", "--id", letters[0])

    assert code == ExitCode.OK
    assert ids(json.loads(out)["letters"]) == {letters[0]}
    assert faulty.where == ([], [1, 2, 3])


def test_an_id_that_is_not_there_is_named(cli: Cli, faulty: Scene) -> None:
    faulty.bury(1)

    code, out, err = cli("dlq", "redrive", "orders", "--yes", "--id", event_id(1), "--id", "nobody")

    assert code == ExitCode.UNEXPECTED
    assert out == "redriven: 1 dead letter from orders-dlq to orders\n"
    assert err == (
        "outboxd: no letter in orders-dlq has the message id or event id nobody; "
        "`outboxd dlq list` shows what there is\n"
    )


def test_nobody_is_redriven_unasked(cli: Cli, faulty: Scene) -> None:
    faulty.bury(1)

    code, _, err = cli("dlq", "redrive", "orders")

    assert code == ExitCode.UNEXPECTED
    assert "the letters (about 1) of orders-dlq go back to orders: nobody to ask" in err
    assert faulty.where == ([], [1])


def test_sends_that_fail_one_by_one_stay_dead_letters(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    letters = faulty.bury(1, 2, 3, 4)
    failing = aws.faults.fail_entries("SendMessageBatch", queue="orders", containing=event_id(2))

    code, out, err = cli("dlq", "redrive", "orders", "--yes", "--json")

    assert failing.fired == 1
    assert code == ExitCode.UNEXPECTED
    assert ids(json.loads(out)["failed"]) == {letters[1]}
    assert err.startswith(
        f"outboxd: {letters[1]}: not confirmed, so still in orders-dlq: InternalError: "
    )
    assert err.count("\n") == 1
    assert faulty.where == ([1, 3, 4], [2])


def test_a_send_that_was_done_but_called_failed_deletes_nothing(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury(1, 2)
    aws.faults.fail_entries("SendMessageBatch", when="after", containing=event_id(2))

    assert cli("dlq", "redrive", "orders", "--yes").code == ExitCode.UNEXPECTED
    assert faulty.where == ([1, 2], [2])


def test_a_send_whose_answer_is_lost_deletes_nothing(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury(1, 2)
    aws.faults.reset("SendMessageBatch", queue="orders")

    code, out, err = cli("dlq", "redrive", "orders", "--yes")

    assert code == ExitCode.UNEXPECTED
    assert out == "redriven: no dead letters from orders-dlq to orders\n"
    assert err.count("not confirmed, so still in orders-dlq: send on queue orders: ") == 2
    assert faulty.where == ([1, 2], [1, 2]), "the inbox absorbs what is in both"


def test_what_was_done_before_an_outage_is_told(cli: Cli, faulty: Scene, aws: LocalAws) -> None:
    faulty.bury(*range(23))
    aws.faults.throttle("SendMessageBatch", queue="orders", skip=1, count=None)

    code, out, err = cli("dlq", "redrive", "orders", "--yes")

    assert code == ExitCode.UNEXPECTED
    assert out == "redriven: 10 dead letters from orders-dlq to orders\n"
    assert err.splitlines()[-1].startswith("outboxd: send on queue orders: throttled: ")
    back, left = faulty.where
    assert len(back) == 10
    assert sorted(back + left) == list(range(23))


@pytest.mark.parametrize("kind", ["entries", "call"])
def test_a_delete_that_fails_once_is_repeated(
    cli: Cli, faulty: Scene, aws: LocalAws, kind: str
) -> None:
    faulty.bury(1, 2)
    if kind == "entries":
        aws.faults.fail_entries("DeleteMessageBatch", entries=[0])
    else:
        aws.faults.server_error("DeleteMessageBatch", when="after")

    assert cli("dlq", "redrive", "orders", "--yes").code == ExitCode.OK
    assert faulty.where == ([1, 2], [])


def test_a_delete_that_fails_for_good_is_told_and_the_letter_given_back(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    (id,) = faulty.bury(1)
    aws.faults.access_denied("DeleteMessageBatch", count=None)

    code, _, err = cli("dlq", "redrive", "orders", "--yes")

    assert code == ExitCode.UNEXPECTED
    assert f"outboxd: {id}: sent, but also still in orders-dlq: delete on queue orders-dlq: " in err
    assert "access denied" in err
    assert faulty.where == ([1], [1])


def test_a_letter_that_cannot_be_given_back_is_told(cli: Cli, faulty: Scene, aws: LocalAws) -> None:
    faulty.bury(1)
    aws.faults.throttle("ChangeMessageVisibilityBatch", count=None)

    code, out, err = cli("dlq", "list", "orders")

    assert code == ExitCode.OK
    assert event_id(1) in out
    assert err.startswith("outboxd: letters could not be given back; they are visible again within")
    assert err.count("\n") == 1


def test_a_letter_that_comes_back_meanwhile_is_not_sent_again(
    faulty: Scene,
) -> None:
    """Its handler still fails: here it takes the place of the consumer, after each batch."""
    faulty.bury(1)

    def bury_again(report: Report) -> None:
        assert len(report.done) == 1, "it was sent more than once"
        (message,) = faulty.messages("orders")
        mark = message["MessageAttributes"][REDRIVEN]
        letter = a_letter(1)
        marked = {**letter.attributes, REDRIVEN: Attribute("Number", mark["StringValue"])}
        faulty.send("orders-dlq", Letter(letter.body, marked))

    settings = load_settings(faulty.folder / "outboxd.toml", os.environ)
    with dead_letters(settings, "orders", redriving=True, stopping=lambda: False) as letters:
        report = anyio.run(letters.redrive, Selection(), None, bury_again)

    assert (len(report.done), len(report.came_back), report.failed) == (1, 1, [])
    assert faulty.where == ([1], [1])


@pytest.mark.parametrize("action", ["list", "redrive"])
def test_an_interrupted_command_leaves_every_letter_in_its_place(
    cli: Cli, faulty: Scene, aws: LocalAws, action: str
) -> None:
    faulty.bury(*range(23))
    operation = "SendMessageBatch" if action == "redrive" else "ReceiveMessage"
    slow = aws.faults.slow(operation, seconds=0.5, when="after", skip=1)

    def interrupt() -> None:
        slow.wait_until_fired()
        os.kill(os.getpid(), signal.SIGINT)

    ctrl_c = threading.Thread(target=interrupt)
    ctrl_c.start()
    code, out, _ = cli("dlq", action, "orders", *(["--yes"] if action == "redrive" else []))
    ctrl_c.join()

    assert code == INTERRUPTED
    if action == "redrive":
        assert out == "redriven: 20 dead letters from orders-dlq to orders\n"
    back, left = faulty.where
    assert len(back) == (20 if action == "redrive" else 0)
    assert sorted(back + left) == list(range(23)), "the rest is visible, and nothing is in both"


@pytest.mark.parametrize("action", [["list"], ["redrive", "--yes"]])
def test_a_missing_dead_letter_queue_is_one_line(
    cli: Cli, faulty: Scene, action: list[str]
) -> None:
    url = faulty.sqs.get_queue_url(QueueName="orders-dlq")["QueueUrl"]
    faulty.sqs.delete_queue(QueueUrl=url)

    code, out, err = cli("dlq", *action, "orders")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err.startswith(
        "outboxd: reading queue orders-dlq: the queue does not exist (run `outboxd provision`): "
    )
    assert err.count("\n") == 1


def test_a_missing_queue_is_found_before_any_letter_is_taken(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury(1)
    url = faulty.sqs.get_queue_url(QueueName="orders")["QueueUrl"]
    faulty.sqs.delete_queue(QueueUrl=url)

    code, _, err = cli("dlq", "redrive", "orders", "--yes")

    assert code == ExitCode.UNEXPECTED
    assert err.startswith("outboxd: reading queue orders: the queue does not exist")
    assert aws.calls("ReceiveMessage", "orders-dlq") == 0
    assert cli("dlq", "list", "orders").code == ExitCode.OK


def test_a_denied_receive_is_one_line(cli: Cli, faulty: Scene, aws: LocalAws) -> None:
    faulty.bury(1)
    aws.faults.access_denied("ReceiveMessage")

    code, _, err = cli("dlq", "list", "orders")

    assert code == ExitCode.UNEXPECTED
    assert err.startswith("outboxd: receive on queue orders-dlq: access denied (compare the IAM")
    assert err.count("\n") == 1


def test_an_aws_that_does_not_answer_is_one_line(cli: Cli, faulty: Scene, unused_port: int) -> None:
    faulty.endpoint = f"http://127.0.0.1:{unused_port}"
    faulty.configure()

    code, _, err = cli("dlq", "list", "orders")

    assert code == ExitCode.UNEXPECTED
    assert err.endswith("; check [aws] endpoint_url; is `outboxd localaws` running?\n")
    assert err.count("\n") == 1


def test_a_queue_that_is_not_configured_is_one_line(cli: Cli, faulty: Scene) -> None:
    code, _, err = cli("dlq", "list", "order")

    assert code == ExitCode.UNEXPECTED
    assert err == 'outboxd: [queues] has no "order"; did you mean "orders"?\n'


def test_a_reason_that_nothing_has_is_one_line(cli: Cli, faulty: Scene) -> None:
    code, _, err = cli("dlq", "redrive", "orders", "--yes", "--reason", "reject")

    assert code == ExitCode.USAGE
    assert err.startswith(
        'outboxd: no letter has the reason "reject"; did you mean "rejected"? There are '
    )


def test_progress_is_told_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress_line("redriven", 30) as told:
        told(10)
    assert capsys.readouterr().err == ""

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress_line("redriven", 30) as told:
        told(10)
        told(40)
    assert capsys.readouterr().err == (
        "\rredriven [######              ] 10 of about 30"
        "\rredriven [####################] 40 of about 40\n"
    )
