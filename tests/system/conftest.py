"""The scene for the system tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from outboxd.demo.aws import PLACEHOLDER_CREDENTIALS, local_aws
from tests.system.scene import Scene


@pytest.fixture
def aws_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A local AWS of this test alone: its queues must not meet those of another one."""
    for name, value in PLACEHOLDER_CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with local_aws(tmp_path / "aws.log") as endpoint:
        yield endpoint


@pytest.fixture
def scene(database: str, aws_endpoint: str, tmp_path: Path) -> Scene:
    return Scene(database, aws_endpoint, tmp_path)
