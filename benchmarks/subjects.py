"""What can be measured: the daemon, a floor, a peer."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from benchmarks.place import PROJECT, QUEUE, Place
from outboxd.core.settings import Settings
from outboxd.demo import processes
from outboxd.demo.supervisor import Supervisor, supervising

REGION = "us-east-1"
LAST_WORDS = 15
FAILED = ("Traceback (most recent call last)", "UnhandledPromiseRejection")


class Subject(Protocol):
    """A running process, perhaps with children, that does a benchmark's work."""

    @property
    def pid(self) -> int:
        """Of the process that all others descend from."""

    def names(self) -> Mapping[int, str]:
        """Those of its living processes that are told apart: what each is, by process id."""

    def last_words(self) -> str | None:
        """What it said, if it has ended although there was work left; else None."""

    def complaint(self) -> str | None:
        """What it said of a failure that it went on after; else None."""


class Daemon:
    """`outboxd run`."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    @property
    def pid(self) -> int:
        return self._supervisor.pid

    def names(self) -> Mapping[int, str]:
        children = {child.pid: child.role for child in processes.children_of(self.pid)}
        return {self.pid: "supervisor", **children}

    def last_words(self) -> str | None:
        return self._supervisor.last_words()

    def complaint(self) -> str | None:
        """It would show as messages that are left or dead."""
        return None


class Program:
    """Any other program, whose processes are not told apart."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    def names(self) -> Mapping[int, str]:
        return {}

    def last_words(self) -> str | None:
        code = self._process.poll()
        return None if code is None else f"it ended with exit code {code}:\n{self._tail()}"

    def complaint(self) -> str | None:
        said = self._log.read_text(errors="replace")
        return self._tail() if any(mark in said for mark in FAILED) else None

    def _tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LAST_WORDS:])


@contextmanager
def daemon(configuration: Path, settings: Settings) -> Iterator[Daemon]:
    """The daemon while the block lasts."""
    with supervising(configuration, settings, configuration.with_suffix(".log")) as supervisor:
        yield Daemon(supervisor)


@contextmanager
def program(
    command: Sequence[str], place: Place, folder: Path = PROJECT, **told: str
) -> Iterator[Program]:
    """A program with its children while the block lasts; it is not asked to stop but killed, since
    by then it has been measured."""
    log = place.configuration.with_suffix(".log")
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env={**os.environ, **surroundings(place), **told},
            start_new_session=True,  # so that all of its processes can be told to end at once
        )
    try:
        yield Program(process, log)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def floor(name: str, place: Place, *arguments: str) -> Iterator[Program]:
    """The floor of that name while the block lasts."""
    with program([sys.executable, "-m", "benchmarks.floor", name, *arguments], place) as running:
        yield running


def surroundings(place: Place) -> dict[str, str]:
    """What programs are told by environment variables."""
    return {
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": place.endpoint,
        "BENCHMARK_DSN": place.dsn,
        "BENCHMARK_QUEUE": QUEUE,
        "PYTHONUNBUFFERED": "1",
    }
