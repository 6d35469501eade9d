"""Dead letters are deleted only when they are meant, by somebody who means it."""

import io
import json

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.testing import LocalAws
from tests.cli.conftest import Cli
from tests.cli.dlq_scene import Scene, a_letter, ids
from tests.cli.dlq_scene import aws as aws
from tests.cli.dlq_scene import faulty as faulty
from tests.cli.dlq_scene import scene as scene
from tests.cli.test_confirmation import Terminal


def test_all_are_deleted(cli: Cli, scene: Scene) -> None:
    scene.bury(*range(23))

    code, out, err = cli("dlq", "purge", "orders", "--all", "--yes")

    assert (code, out, err) == (ExitCode.OK, "purged: 23 dead letters of orders-dlq\n", "")
    assert scene.where == ([], [])


def test_what_the_filters_do_not_choose_stays(cli: Cli, faulty: Scene) -> None:
    faulty.bury(*range(30))
    for number in range(30, 45):
        faulty.send("orders-dlq", a_letter(number, type="cart.left"))

    code, out, _ = cli("dlq", "purge", "orders", "--type", "cart.*", "--yes", "--json")

    assert code == ExitCode.OK
    assert len(json.loads(out)["purged"]) == 15
    assert faulty.where == ([], list(range(30)))


@pytest.mark.parametrize("argv", [[], ["--all", "--type", "*"]])
def test_what_is_meant_has_to_be_said(cli: Cli, faulty: Scene, argv: list[str]) -> None:
    faulty.bury(1)

    code, _, err = cli("dlq", "purge", "orders", "--yes", *argv)

    assert code == ExitCode.USAGE
    assert err == "outboxd: purge: choose letters by filters, or give --all; not both\n"
    assert faulty.where == ([], [1])


@pytest.mark.parametrize(
    ("typed", "left"), [("orders-dlq\n", []), ("y\n", [1]), ("orders\n", [1]), ("", [1])]
)
def test_only_the_name_of_the_queue_deletes(
    cli: Cli, faulty: Scene, monkeypatch: pytest.MonkeyPatch, typed: str, left: list[int]
) -> None:
    faulty.bury(1)
    monkeypatch.setattr("sys.stdin", Terminal(typed))

    code, _, err = cli("dlq", "purge", "orders", "--all")

    assert "(all, about 1) of orders-dlq are deleted for good. Type orders-dlq to go on: " in err
    assert code == (ExitCode.UNEXPECTED if left else ExitCode.OK)
    assert faulty.where == ([], left)


def test_nothing_is_deleted_when_nobody_is_there(
    cli: Cli, faulty: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty.bury(1)
    monkeypatch.setattr("sys.stdin", io.StringIO("orders-dlq\n"))

    assert cli("dlq", "purge", "orders", "--all").code == ExitCode.UNEXPECTED
    assert faulty.where == ([], [1])


def test_a_dry_run_shows_which_and_deletes_nothing(cli: Cli, faulty: Scene) -> None:
    letters = faulty.bury(1, 2)

    code, out, _ = cli("dlq", "purge", "orders", "--all", "--dry-run", "--json")

    assert code == ExitCode.OK
    assert ids(json.loads(out)["letters"]) == set(letters)
    assert faulty.where == ([], [1, 2])


def test_what_was_buried_after_it_began_was_not_meant(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury(1)
    aws.advance(60)
    faulty.bury(2)

    code, out, _ = cli("dlq", "purge", "orders", "--all", "--yes")

    assert code == ExitCode.OK
    assert out.splitlines() == [
        "purged: 1 dead letter of orders-dlq",
        "newer than this command, and left: 1 dead letter",
    ]
    assert faulty.where == ([], [2])


def test_one_that_is_too_new_is_not_called_missing(cli: Cli, faulty: Scene, aws: LocalAws) -> None:
    aws.advance(60)
    (letter,) = faulty.bury(1)

    code, out, err = cli("dlq", "purge", "orders", "--id", letter, "--yes")

    assert (code, err) == (ExitCode.OK, "")
    assert out.endswith("newer than this command, and left: 1 dead letter\n")


def test_a_delete_that_fails_for_good_is_told_and_ends_it(
    cli: Cli, faulty: Scene, aws: LocalAws
) -> None:
    faulty.bury(*range(25))
    aws.faults.access_denied("DeleteMessageBatch", skip=1, count=None)

    code, out, err = cli("dlq", "purge", "orders", "--all", "--yes")

    assert (code, out) == (ExitCode.UNEXPECTED, "purged: 10 dead letters of orders-dlq\n")
    assert err.count("not deleted, so still in orders-dlq") == 10
    assert "access denied" in err.splitlines()[-1]
    assert aws.calls("DeleteMessageBatch", "orders-dlq") == 4, "three tries of one batch, no more"
    assert len(faulty.events("orders-dlq")) == 15
