"""`outboxd check --live` as a command: what it prints, its exit codes, and that it ends."""

import json
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.core.live.finding import Code
from outboxd.resources import project_directory
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here
from tests.cli.conftest import Cli
from tests.cli.live_scene import Live

USUAL = {
    Code.SERVER_NOT_DURABLE,  # the tests' own server
    Code.PERMISSIONS_UNTESTED,
    Code.IDENTITY_UNKNOWN,  # localaws has no STS
}


@pytest.fixture
def live(
    cli: Cli, folder: Path, database: str, aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> Live:
    """Everything as it should be."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    live = Live(cli, folder, database, aws.endpoint_url)
    assert cli("provision").code == ExitCode.OK
    return live


def test_what_is_as_it_should_be_gets_no_error(live: Live) -> None:
    assert live.codes() == USUAL
    assert live.check().code == ExitCode.OK


def test_strict_makes_warnings_count(live: Live) -> None:
    assert live.check("--strict").code == ExitCode.UNEXPECTED


def test_an_error_is_told_with_its_consequence_and_remedy(live: Live) -> None:
    live.client("sqs").delete_queue(QueueUrl=live.queue_url("orders-dlq"))

    ran = live.check()

    assert ran.code == ExitCode.UNEXPECTED
    lines = ran.out.splitlines()
    at = lines.index(
        "error: queue orders-dlq: there is no queue of this name in this account and region "
        "[queue-missing]"
    )
    assert lines[at + 1].startswith("    then: what handlers give up could not be dead-lettered")
    assert lines[at + 2].startswith("    do:   run `outboxd provision`")
    assert lines[-1].startswith("live: 1 error, 1 warning, ")


def test_it_says_which_account_and_which_database_it_has_looked_at(live: Live) -> None:
    lines = live.check().out.splitlines()

    assert lines[0] == "configuration ok: 2 routes, 2 queues, 1 handler"
    assert lines[1] == f"aws: account 000000000000 in us-east-1 at {live.endpoint}"
    assert re.fullmatch(
        r"database: test_\d+ of PostgreSQL [\d.]+, schema outboxd at \d{4}_\w+, as postgres",
        lines[2],
    )


def test_the_document_holds_findings_and_counts(live: Live) -> None:
    live.client("sqs").delete_queue(QueueUrl=live.queue_url("orders-dlq"))

    document = json.loads(live.check("--json").out)

    assert document["counts"] == {"errors": 1, "warnings": 1, "notes": 2}
    assert document["configuration_notes"] == []
    assert document["looked_at"].keys() == {"aws", "database"}
    first = document["findings"][0]
    assert first.keys() == {"severity", "code", "subject", "found", "consequence", "fix"}
    assert (first["severity"], first["code"]) == ("error", "queue-missing")


def test_nothing_is_received_sent_or_changed(live: Live, aws: LocalAws) -> None:
    aws.reset_calls()

    live.check()

    operations = {call.operation for call in aws.call_counts()}
    reading = {each for each in operations if each.startswith(("Get", "List", "Describe"))}
    assert operations - reading == {"ChangeMessageVisibility", "DeleteMessage"}
    assert {call.queue for call in aws.call_counts() if call.operation == "DeleteMessage"} == {
        "orders"  # the one that is consumed
    }


def test_the_page_of_policies_grants_what_is_used(live: Live, aws: LocalAws) -> None:
    aws.reset_calls()
    live.check()
    page = (project_directory() / "docs" / "iam.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `outboxd check --live` |")]

    granted = {action for row in rows for action in re.findall(r"(\w+)`", row.split("|")[3])}

    assert granted == {call.operation for call in aws.call_counts()}


@pytest.mark.parametrize(
    "argv",
    [("--json",), ("--strict",), ("--timeout-seconds", "3"), ("--live", "--show")],
    ids=" ".join,
)
def test_arguments_that_do_not_go_together_are_a_usage_error(
    live: Live, argv: tuple[str, ...]
) -> None:
    ran = live.cli("check", *argv)

    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert ran.err.startswith("outboxd: --")


def test_a_wrong_configuration_is_told_before_anybody_is_asked(live: Live, aws: LocalAws) -> None:
    live.configure(orders="concurency = 3")
    aws.reset_calls()

    ran = live.check("--json")

    assert (ran.code, ran.out) == (ExitCode.INVALID_CONFIGURATION, "")
    assert "concurency: unknown key" in ran.err
    assert aws.calls() == 0


def test_an_aws_that_is_away_is_one_finding_and_the_database_is_looked_at(
    live: Live, unused_port: int
) -> None:
    live.configure(endpoint=f"http://127.0.0.1:{unused_port}")
    live.sql("ALTER TABLE outbox_events SET UNLOGGED")

    found = live.findings()

    away = [each for each in found if each["code"] == Code.NOT_LOOKED_AT]
    assert len(away) == 1
    assert "cannot connect" in away[0]["found"]
    assert "so not asked either: queue audit, queue orders-dlq, queue orders" in away[0]["found"]
    assert Code.TABLE_UNLOGGED in live.codes()


def test_an_aws_that_does_not_answer_ends_the_question(live: Live, aws: LocalAws) -> None:
    with aws.faults.hang("GetQueueAttributes", count=None):
        found = live.findings("--timeout-seconds", "0.5")

    (hung,) = [each for each in found if each["code"] == Code.NOT_LOOKED_AT]
    assert "no answer within 0.5 s" in hung["found"]


def test_what_may_not_be_looked_at_is_told_for_itself(live: Live, aws: LocalAws) -> None:
    with aws.faults.access_denied("GetQueueAttributes", queue="orders-dlq", count=None):
        ran = live.check("--json")

    found = json.loads(ran.out)["findings"]
    (refused,) = [each for each in found if each["code"] == Code.NOT_LOOKED_AT]
    assert "reading queue orders-dlq: access denied" in refused["found"]
    assert "not asked either" not in refused["found"]
    assert ran.code == ExitCode.UNEXPECTED


def test_an_identity_that_may_not_delete_is_told_so(live: Live, aws: LocalAws) -> None:
    with aws.faults.access_denied("DeleteMessage", count=None):
        found = live.findings()

    (refused,) = [each for each in found if each["code"] == Code.PERMISSION_REFUSED]
    assert refused["found"] == "the identity that checks may not call sqs:DeleteMessage"
    assert refused["severity"] == "warning"


def test_a_server_that_is_no_aws_leaves_no_traceback(live: Live) -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}") as port:
        live.configure(endpoint=f"http://127.0.0.1:{port}")
        found = live.findings("--timeout-seconds", "3")

    assert Code.NOT_LOOKED_AT in {each["code"] for each in found}


def test_a_database_that_is_away_is_one_finding_without_the_password(
    live: Live, unused_port: int
) -> None:
    live.configure(url=f"postgresql://me:hunter2@127.0.0.1:{unused_port}/shop")

    ran = live.check()

    assert ran.code == ExitCode.UNEXPECTED
    assert "hunter2" not in ran.out
    assert "database: not reached, schema outboxd" in ran.out
    assert ran.out.count("[not-looked-at]") == 1
    assert "Connection refused" in ran.out


def test_a_database_that_does_not_answer_ends_the_question(live: Live) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        live.configure(url=f"postgresql://me@127.0.0.1:{port}/shop")
        (silence,) = live.in_database(seconds=0.3)

    assert (silence.code, silence.subject) == (Code.NOT_LOOKED_AT, "PostgreSQL")
    assert "no answer within 0.3 s" in silence.found


@contextmanager
def answering(reply: bytes) -> Iterator[int]:
    """A server that gives everybody the same answer."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def test_every_code_is_explained_with_its_severity() -> None:
    page = (project_directory() / "docs" / "check-live.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", page, re.MULTILINE))

    assert rows == {code.value: code.severity.value for code in Code}
