"""The tutorial works as it is written: its files are created, its commands run, in its order."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from outboxd.resources import project_directory

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

TUTORIAL = project_directory() / "docs" / "tutorial.md"
LONGEST_SECONDS = 30.0

INSTALLATION = "make install && . .venv/bin/activate\n"
ENVIRONMENT = ". ./local.env\n"
DAEMONS = ("outboxd localaws", "outboxd localpostgres", "outboxd run")
"""Commands that go on until they are stopped: what follows is run beside them."""

AWS_PORT = "4566"
"""What the page and the starter say; another one is taken, for this one may be in use."""

EXPLAINED = {"events.py", "shop.py", "points.py", "outboxd.toml", "test_points.py"}
"""Files of `outboxd init` that the page shows parts of."""


class Block(NamedTuple):
    """One fenced block of the page."""

    language: str
    text: str


class Reader:
    """Somebody who does what the tutorial says, in an empty folder."""

    def __init__(self, folder: Path, environ: dict[str, str], aws_port: str) -> None:
        self._folder = folder
        self._environ = environ
        self._aws_port = aws_port
        self._last_command = ""
        self._last_printed = ""
        self._daemons: dict[str, ExitStack] = {}
        self.starter: set[str] = set()
        self.compared: set[str] = set()

    def follow(self, block: Block, beside: ExitStack) -> None:
        match block.language:
            case "python" | "toml":
                self._write_or_compare(block.text)
            case "sh" if block.text == INSTALLATION:
                self._check_installation()
            case "sh" if block.text.startswith(DAEMONS):
                self._start(block.text, beside)
            case "sh" if block.text == ENVIRONMENT:
                self._read_environment()
            case "sh":
                self._last_command = block.text
                self._until_it_succeeds(block.text)
                if block.text == "outboxd init\n":
                    self._note_the_starter()
            case "text":
                self._until_it_prints(block.text)
            case other:
                pytest.fail(f"what is a block of {other}?")

    def _write_or_compare(self, text: str) -> None:
        """What `outboxd init` wrote is shown in parts, which must be as they were written."""
        named = re.match(r"# (\w+\.\w+)\n", text)
        assert named is not None, "a file says its name in its first line"
        name, content = named[1], text[named.end() :]
        path = self._folder / name
        if name in self.starter:
            self.compared.add(name)
            assert content in path.read_text(), f"{name} has no such part: {content}"
        else:
            assert not path.exists(), f"{name} is written twice"
            path.write_text(text)

    def _note_the_starter(self) -> None:
        self.starter = {path.name for path in self._folder.iterdir()}
        local = self._folder / "local.env"
        local.write_text(local.read_text().replace(AWS_PORT, self._aws_port))

    def _read_environment(self) -> None:
        """As the shell would; whoever is a daemon already has its own."""
        command = ["bash", "-euc", f"{ENVIRONMENT}env -0"]
        read = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        pairs = (pair.partition("=") for pair in read.stdout.split("\0") if pair)
        self._environ = {name: value for name, _, value in pairs}

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
        while (ran := self._run(command)).returncode != 0:
            assert time.monotonic() < deadline, f"this does not work: {command}"
        self._last_printed = ran.stdout

    def _until_it_prints(self, expected: str) -> None:
        """At once or, of what is only looked at, at last."""
        deadline = time.monotonic() + LONGEST_SECONDS
        while self._last_printed != expected:
            assert time.monotonic() < deadline, f"it printed {self._last_printed}"
            self._last_printed = self._run(self._last_command).stdout


def blocks_of(page: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.M | re.S)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def temporary_directory() -> Iterator[str]:
    """For the page's PostgreSQL: short, and open to the user that the server of root runs as."""
    folder = Path(tempfile.mkdtemp(prefix="tutorial-"))
    folder.chmod(0o755)
    yield str(folder)
    shutil.rmtree(folder)


def test_the_tutorial_works_as_it_is_written(tmp_path: Path, temporary_directory: str) -> None:
    aws_port = str(free_port())
    environ = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": temporary_directory,
        "PORT": str(free_port()),
    }
    for name in ("DATABASE_URL", "AWS_ENDPOINT_URL", "OUTBOXD_CONFIG"):
        environ.pop(name, None)
    page = TUTORIAL.read_text(encoding="utf-8").replace(AWS_PORT, aws_port)
    blocks = blocks_of(page)
    assert {block.language for block in blocks} == {"sh", "python", "toml", "text"}

    reader = Reader(tmp_path, environ, aws_port)
    with ExitStack() as beside:
        for block in blocks:
            reader.follow(block, beside)
    assert reader.compared == EXPLAINED
    assert list(Path(temporary_directory).iterdir()) == []


def test_what_the_tutorial_points_at_is_there() -> None:
    targets = re.findall(r"\]\(([^)#]+)", TUTORIAL.read_text(encoding="utf-8"))

    assert "../handlers/shipping.py" in targets
    assert [each for each in targets if not (TUTORIAL.parent / each).exists()] == []
