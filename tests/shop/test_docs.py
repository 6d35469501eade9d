"""The tutorial works as it is written: its files are created, its commands run, in its order."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from outboxd.resources import project_directory

pytestmark = pytest.mark.system

TUTORIAL = project_directory() / "docs" / "tutorial.md"
LONGEST_SECONDS = 30.0

INSTALLATION = "make install && . .venv/bin/activate\n"
DAEMONS = ("outboxd localaws", "outboxd run")
"""Commands that go on until they are stopped: what follows is run beside them."""


class Block(NamedTuple):
    """One fenced block of the page."""

    language: str
    text: str


class Reader:
    """Somebody who does what the tutorial says, in an empty folder."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._last_command = ""
        self._daemons: dict[str, ExitStack] = {}

    def follow(self, block: Block, beside: ExitStack) -> None:
        match block.language:
            case "python" | "toml":
                self._write(block.text)
            case "sh" if block.text == INSTALLATION:
                self._check_installation()
            case "sh" if block.text.startswith(DAEMONS):
                self._start(block.text, beside)
            case "sh" if block.text.startswith("export"):
                self._check_exports(block.text)
            case "sh":
                self._last_command = block.text
                self._until_it_succeeds(block.text)
            case "text":
                self._until_it_prints(block.text)
            case other:
                pytest.fail(f"what is a block of {other}?")

    def _write(self, text: str) -> None:
        named = re.match(r"# (\w+\.\w+)\n", text)
        assert named is not None, "a file says its name in its first line"
        (self._folder / named[1]).write_text(text)

    def _start(self, command: str, beside: ExitStack) -> None:
        """Instead of the same that runs already: the page says to stop it."""
        if command in self._daemons:
            self._daemons[command].close()
        stack = beside.enter_context(ExitStack())
        stack.enter_context(self._running(command))
        self._daemons[command] = stack

    def _check_installation(self) -> None:
        """That there is such a target; what it makes is what this test runs in."""
        command = ["make", "--dry-run", "--always-make", "--directory", str(project_directory())]
        plan = subprocess.run([*command, "install"], capture_output=True, text=True, check=True)
        assert "-m venv .venv" in plan.stdout

    def _check_exports(self, text: str) -> None:
        assert set(re.findall(r"(\w+)=", text)) <= self._environ.keys()

    @contextmanager
    def _running(self, command: str) -> Iterator[None]:
        process = subprocess.Popen(
            ["bash", "-euc", f"exec {command}"], cwd=self._folder, env=self._environ
        )
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(LONGEST_SECONDS) == 0

    def _run(self, command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self._folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            timeout=LONGEST_SECONDS,
            text=True,
            check=False,
        )

    def _until_it_succeeds(self, command: str) -> None:
        """A person waits until a daemon that was just started is there; so do we."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while self._run(command).returncode != 0:
            assert time.monotonic() < deadline, f"this does not work: {command}"

    def _until_it_prints(self, expected: str) -> None:
        deadline = time.monotonic() + LONGEST_SECONDS
        while (printed := self._run(self._last_command).stdout) != expected:
            assert time.monotonic() < deadline, f"it printed {printed}"


def blocks_of(page: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_tutorial_works_as_it_is_written(bare_database: str, tmp_path: Path) -> None:
    aws_port = free_port()
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DATABASE_URL": bare_database,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{aws_port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "PORT": str(free_port()),
    }
    page = TUTORIAL.read_text(encoding="utf-8").replace("4566", str(aws_port))
    blocks = blocks_of(page)
    assert {block.language for block in blocks} == {"sh", "python", "toml", "text"}

    reader = Reader(tmp_path, environ)
    with ExitStack() as beside:
        for block in blocks:
            reader.follow(block, beside)
