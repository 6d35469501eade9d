"""The pages about commands, settings and policies do not fall behind the code."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from outboxd.adapters.metrics.consumer import ConsumerMetrics
from outboxd.adapters.metrics.relay import RelayMetrics
from outboxd.cli.main import COMMANDS
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import QueueSettings
from outboxd.ports.progress import Progress
from outboxd.resources import project_directory
from outboxd.supervision.status.model import (
    Child,
    Destination,
    Handler,
    Outbox,
    OutboxHistory,
    Problem,
    Queue,
    QueueHistory,
    Status,
    Totals,
    Trouble,
)
from tests.cli.conftest import Cli

DOCS = project_directory() / "docs"

TWO_MISTAKES = """
[database]
url = "${DATABASE_URL}"
[relay]
[[relay.routes]]
events = "*"
to = ["sqs:order-event"]
[queues.order-events]
concurency = 4
[[queues.order-events.handlers]]
event = "*"
handler = "shop:ship"
name = "ship"
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_section(command: str) -> None:
    assert re.search(rf"^## `outboxd {command}\b", (DOCS / "cli.md").read_text(), re.MULTILINE)


def test_every_exit_code_that_a_user_can_meet_is_listed() -> None:
    listed = {
        int(code) for code in re.findall(r"^\| (\d+) \|", (DOCS / "cli.md").read_text(), re.M)
    }

    of_children = {ExitCode.ORPHANED, ExitCode.HANDLER_TIMEOUT}
    assert listed == set(ExitCode) - of_children | {130, 141}


def test_the_problems_that_are_shown_are_those_that_a_check_tells(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both kinds of them, one after the other."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    shown = re.findall(r"```text\n(.*?)```", (DOCS / "configuration.md").read_text(), re.DOTALL)
    told = []
    (folder / "outboxd.toml").write_text(TWO_MISTAKES)
    told.append(cli("check").err)
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/shop")
    (folder / "outboxd.toml").write_text(TWO_MISTAKES.replace("concurency", "concurrency"))
    told.append(cli("check").err)

    assert shown == told


def test_every_metric_that_is_named_exists() -> None:
    registry = CollectorRegistry()
    RelayMetrics(registry, ["sqs:orders"])
    ConsumerMetrics(registry, "orders", QueueSettings(), Progress())
    existing = {sample.name for family in registry.collect() for sample in family.samples}

    named = set(re.findall(r"\boutboxd_[a-z_]+", (DOCS / "cli.md").read_text()))

    assert named
    assert named <= existing


def test_every_policy_is_one_that_iam_would_parse() -> None:
    policies = re.findall(r"```json\n(.*?)```", (DOCS / "iam.md").read_text(), re.DOTALL)

    assert len(policies) == 5
    for policy in policies:
        parsed = json.loads(policy)
        assert parsed["Version"] == "2012-10-17"
        assert all(
            statement.keys() == {"Sid", "Effect", "Action", "Resource"}
            for statement in parsed["Statement"]
        )


def test_every_name_of_the_status_is_explained() -> None:
    explained = set(re.findall(r"`([a-z0-9_]+)(?:\[\])?`", (DOCS / "status.md").read_text()))

    def names(struct: type[msgspec.Struct]) -> set[str]:
        return {field.name for field in msgspec.structs.fields(struct)}

    for struct in (
        *(Status, Problem, Totals, Child, Outbox, OutboxHistory, Destination),
        *(Queue, QueueHistory, Handler, Trouble),
    ):
        assert names(struct) - explained == set()
