"""A working directory, the command line, and an SQS to provision."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from outboxd.cli.main import main
from tests.emulators import EMULATORS


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class Cli(Protocol):
    """Runs a command in this process."""

    def __call__(self, *argv: str) -> Ran: ...


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*argv: str) -> Ran:
        code = main(argv)
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, without any configuration yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OUTBOXD_CONFIG", raising=False)
    return tmp_path


@pytest.fixture(params=EMULATORS)
def aws_endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an SQS without queues."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with EMULATORS[request.param]() as endpoint:
        yield endpoint


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that refuses connections: bound, so that nobody else takes it, but not listening."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]
