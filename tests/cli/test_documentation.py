"""The pages about commands, settings and policies do not fall behind the code."""

import json
import re

import pytest

from outboxd.cli.main import COMMANDS
from outboxd.core.exit_codes import ExitCode
from outboxd.resources import project_directory

DOCS = project_directory() / "docs"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_section(command: str) -> None:
    assert re.search(rf"^## `outboxd {command}\b", (DOCS / "cli.md").read_text(), re.MULTILINE)


def test_every_exit_code_that_a_user_can_meet_is_listed() -> None:
    listed = {
        int(code) for code in re.findall(r"^\| (\d+) \|", (DOCS / "cli.md").read_text(), re.M)
    }

    assert listed == set(ExitCode) - {ExitCode.ORPHANED} | {130, 141}


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
