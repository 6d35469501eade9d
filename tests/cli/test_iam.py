"""The page of IAM policies grants each command what it does, and nothing more."""

import re
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.resources import project_directory
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here
from tests.cli.conftest import Cli
from tests.cli.outbox_scene import CONFIGURATION, Scene
from tests.cli.test_where import bury

EVENT = UUID("0194d0c0-0000-7000-8000-000000000001")

ROW = re.compile(r"^\| (?P<part>[^|]+) \| (?P<queue>[^|]+) \| (?P<actions>[^|]+) \|$", re.MULTILINE)


def granted(part: str, queue: str) -> set[str]:
    """The actions that the table gives a part on such a queue; "the same" is that of `dlq list`."""
    page = (project_directory() / "docs" / "iam.md").read_text()
    for row in ROW.finditer(page):
        if row["part"] == f"`outboxd {part}`" and row["queue"].startswith(queue):
            actions = set(re.findall(r"`(\w+)`", row["actions"]))
            same = row["actions"].startswith("the same")
            return actions | granted("dlq list", queue) if same else actions
    raise AssertionError(f"docs/iam.md has no row for {part} and {queue}")


def used(aws: LocalAws, queue: str) -> set[str]:
    """The actions on a queue since the last reset: a batch is allowed by its single action."""
    return {
        each.operation.removesuffix("Batch") for each in aws.call_counts() if each.queue == queue
    }


@pytest.fixture
def run(
    cli: Cli, folder: Path, database: str, aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Runs a command on an outbox and a dead-letter queue with a letter, and counts its calls."""
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    Scene(cli, folder, database, f'[aws]\nendpoint_url = "{aws.endpoint_url}"\n' + CONFIGURATION)

    def run(*argv: str) -> None:
        aws.reset_calls()
        assert cli(*argv).code == ExitCode.OK

    run("provision")
    return run


def test_provisioning_uses_what_is_granted_on_every_queue(
    run: Callable[..., None], aws: LocalAws, folder: Path
) -> None:
    seen = used(aws, "orders") | used(aws, "orders-dlq")
    configuration = folder / "outboxd.toml"
    changed = "[queues.orders]\nvisibility_seconds = 77"
    configuration.write_text(configuration.read_text().replace("[queues.orders]", changed))
    run("provision")

    assert seen | used(aws, "orders") | used(aws, "orders-dlq") == granted("provision", "every")


def test_looking_for_an_event_reads_dead_letters_and_deletes_none(
    run: Callable[..., None], aws: LocalAws
) -> None:
    bury(aws.endpoint_url, EVENT, "m-1")

    run("where", str(EVENT))

    assert used(aws, "orders-dlq") == granted("where", "dead-letter queues")
    assert used(aws, "orders") == set()


def test_listing_dead_letters_deletes_none(run: Callable[..., None], aws: LocalAws) -> None:
    bury(aws.endpoint_url, EVENT, "m-1")

    run("dlq", "list", "orders")

    assert used(aws, "orders-dlq") == granted("dlq list", "the dead-letter queue")
    assert used(aws, "orders") == set()


def test_a_redrive_sends_to_the_queue_and_deletes_from_the_other(
    run: Callable[..., None], aws: LocalAws
) -> None:
    bury(aws.endpoint_url, EVENT, "m-1")
    run("dlq", "list", "orders")
    looked = used(aws, "orders-dlq")

    run("dlq", "redrive", "orders", "--yes")

    assert used(aws, "orders-dlq") | looked == granted("dlq redrive", "the dead-letter queue")
    assert used(aws, "orders") == granted("dlq redrive", "the queue that it redrives to")
