"""A working directory, the command line, and an SQS to provision."""

import asyncio
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from moto.server import ThreadedMotoServer

from outboxd.cli.main import main
from outboxd.localaws.server import local_aws


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


@pytest.fixture(params=["localaws", "moto"])
def aws_endpoint(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an SQS without queues; two, because one author's stand-in proves little."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    yield from _localaws() if request.param == "localaws" else _moto()


def _moto() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    # Its queues belong to the process and outlive a server.
    with urllib.request.urlopen(f"{endpoint}/moto-api/reset", data=b""):
        yield endpoint
    server.stop()


def _localaws() -> Iterator[str]:
    """In a thread of its own, because commands are synchronous."""
    listening = threading.Event()
    endpoints: list[str] = []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with local_aws() as endpoint:
            endpoints.append(endpoint)
            listening.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=[serve()])
    thread.start()
    assert listening.wait(10)
    yield endpoints[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    loop.close()


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that refuses connections: bound, so that nobody else takes it, but not listening."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]
