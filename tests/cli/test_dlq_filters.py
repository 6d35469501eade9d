"""Every action means the letters that its filters choose, and no others."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.core.outcomes import DeadReason
from outboxd.testing import LocalAws
from tests.cli.conftest import Cli
from tests.cli.dlq_scene import Scene, a_letter, event_id
from tests.cli.dlq_scene import aws as aws
from tests.cli.dlq_scene import faulty as faulty

LATER = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()


def bury_five(scene: Scene, aws: LocalAws) -> None:
    """The fifth an hour after the others, by the clock of SQS."""
    scene.send("orders-dlq", a_letter(1))
    scene.send("orders-dlq", a_letter(2, DeadReason.MAX_ATTEMPTS))
    scene.send("orders-dlq", a_letter(3, type="order.sent"))
    scene.send("orders-dlq", a_letter(4, type="cart.left", handler="remind"))
    aws.advance(3600)
    scene.send("orders-dlq", a_letter(5))


FILTERS = {
    "type": (["--type", "order.*"], [1, 2, 3, 5]),
    "one of two types": (["--type", "cart.left", "--type", "order.s*"], [3, 4]),
    "handler": (["--handler", "remind"], [4]),
    "none": (["--handler", "remind", "--type", "order.*"], []),
    "reason": (["--reason", "max_attempts"], [2]),
    "all": (["--reason", "rejected", "--type", "order.paid", "--older-than", LATER], [1]),
    "older": (["--older-than", LATER], [1, 2, 3, 4]),
    "newer": (["--newer-than", LATER], [5]),
    "newer than an age": (["--newer-than", "1d"], [1, 2, 3, 4, 5]),
    "older than an age": (["--older-than", "1min"], []),
    "ids": (["--id", event_id(1), "--id", event_id(4)], [1, 4]),
}


@pytest.mark.parametrize("case", FILTERS)
def test_a_list_shows_what_the_filters_choose(
    cli: Cli, faulty: Scene, aws: LocalAws, case: str
) -> None:
    filters, chosen = FILTERS[case]
    bury_five(faulty, aws)

    code, out, _ = cli("dlq", "list", "orders", "--json", *filters)

    assert code == ExitCode.OK
    assert {e["event_id"] for e in json.loads(out)["letters"]} == set(map(event_id, chosen))
    assert faulty.events("orders-dlq") == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("case", FILTERS)
def test_a_redrive_sends_what_the_filters_choose_and_leaves_the_others(
    cli: Cli, faulty: Scene, aws: LocalAws, case: str
) -> None:
    filters, chosen = FILTERS[case]
    bury_five(faulty, aws)

    assert cli("dlq", "redrive", "orders", "--yes", "--rate", "1000", *filters).code == ExitCode.OK
    assert faulty.where == (chosen, sorted({1, 2, 3, 4, 5} - set(chosen)))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--older-than", "soon"], "'soon' is neither an age, such as 90s"),
        (["--newer-than", "2026-03-04T02:11:00"], "has no zone; write 2026-03-04T02:11:00Z if"),
        (["--older-than", "1h", "--newer-than", "30min"], "no letter is both: "),
        (["--rate", "0"], "'0' is no number from 1"),
    ],
)
def test_filters_that_make_no_sense_are_usage_errors(
    cli: Cli, faulty: Scene, argv: list[str], words: str
) -> None:
    code, out, err = cli("dlq", "redrive", "orders", *argv)

    assert (code, out) == (ExitCode.USAGE, "")
    assert words in err


def test_a_question_names_the_filters(
    cli: Cli, faulty: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)

    _, _, err = cli("dlq", "redrive", "orders", "--type", "order.*", "--older-than", "2h")

    assert (
        "the letters (type order.*, older than 2h) of orders-dlq go back to orders: nobody to ask"
    ) in err


def test_letters_that_a_killed_command_hides_are_told(cli: Cli, faulty: Scene) -> None:
    faulty.bury(1, 2, 3)
    url = faulty.sqs.get_queue_url(QueueName="orders-dlq")["QueueUrl"]
    faulty.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1, VisibilityTimeout=60)

    code, out, err = cli("dlq", "redrive", "orders", "--yes")

    assert (code, out) == (ExitCode.OK, "redriven: 2 dead letters from orders-dlq to orders\n")
    assert err.startswith("outboxd: about 1 of the letters of orders-dlq were hidden when it began")
