"""docs/testing.md: its tests pass, its requests are accepted, its tables are complete."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from outboxd.localaws.script.decoding import decoded
from outboxd.localaws.script.kinds import KINDS
from outboxd.localaws.script.rule import Address
from outboxd.localaws.sqs.operations.table import OPERATIONS
from outboxd.resources import project_directory

PAGE = (project_directory() / "docs" / "testing.md").read_text(encoding="utf-8")


def test_its_tests_pass_as_they_are_written(bare_database: str, tmp_path: Path) -> None:
    files = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(files) == PAGE.count("```python")
    for name, text in files:
        (tmp_path / name).write_text(text)

    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**os.environ, "DATABASE_URL": bare_database},
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert outcome.returncode == 0, outcome.stdout
    assert "6 passed" in outcome.stdout


def test_its_requests_are_understood() -> None:
    contents = re.findall(r"curl -d '(.*?)'", PAGE, re.S)

    assert len(contents) == 2
    for content in contents:
        decoded(content.encode(), OPERATIONS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_fault_is_in_its_table_with_its_settings(kind: type) -> None:
    name = next(name for name, each in KINDS.items() if each is kind)
    row = re.search(rf"^\|.*`{name}`.*$", PAGE, re.M)

    assert row is not None
    for setting in KINDS[name].__struct_fields__:
        assert f"`{setting}`" in row[0]


@pytest.mark.parametrize("setting", Address.__struct_fields__)
def test_every_part_of_an_address_is_in_its_table(setting: str) -> None:
    assert re.search(rf"^\| `{setting}` \|", PAGE, re.M)
