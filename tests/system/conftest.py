"""The scene for the system tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from outboxd.demo.aws import local_aws
from tests.system.scene import CREDENTIALS, Scene


@pytest.fixture(scope="session")
def aws_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with local_aws(tmp_path_factory.mktemp("aws") / "log") as endpoint:
        yield endpoint


@pytest.fixture
def scene(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    # A local AWS of its own: queues of the same name must not meet those of another test.
    with local_aws(tmp_path / "aws.log") as endpoint:
        yield Scene(database, endpoint, tmp_path)
