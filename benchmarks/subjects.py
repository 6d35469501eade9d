"""What can be measured: the daemon, and a floor."""

import math
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.errors import BenchmarkError
from benchmarks.place import PROJECT
from outboxd.core.settings import Settings
from outboxd.demo import processes
from outboxd.demo.supervisor import Supervisor, supervising

BATCH = 10
METRICS_SECONDS = 15.0
"""Longer than a child keeps its metrics to itself."""

STOP_SECONDS = 10.0


class Subject(Protocol):
    """A running process, perhaps with children, that does a benchmark's work."""

    @property
    def pid(self) -> int:
        """Of the process that all others descend from."""

    def names(self) -> Mapping[int, str]:
        """Its living processes: what each is, by process id."""

    def last_words(self) -> str | None:
        """What it said, if it has ended although there was work left; else None."""

    def calls(self, done: int) -> int:
        """How many SQS calls the work of `done` events took, once it is done."""


class Daemon:
    """`outboxd run`; its calls are counted by its own metrics."""

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

    def calls(self, done: int) -> int:
        """Sends, or receives that brought something, deletes, extensions and letters. Empty long
        polls and samples of the depth depend on time, not on messages, and are left out."""
        self._supervisor.await_ready(lambda: False)
        deadline = time.monotonic() + METRICS_SECONDS
        while (calls := _calls(self._supervisor.ask("/metrics") or "", done)) is None:
            if time.monotonic() > deadline:
                raise BenchmarkError(
                    f"the daemon did not count {done} events as done within {METRICS_SECONDS:g} s"
                )
            time.sleep(0.1)
        return calls


class Floor:
    """A process of `benchmarks.floor`, which counts its calls itself."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def names(self) -> Mapping[int, str]:
        return {self.pid: "floor"}

    def last_words(self) -> str | None:
        code = self._process.poll()
        return None if code is None else f"the floor ended with exit code {code}; see above"

    def calls(self, done: int) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@contextmanager
def daemon(configuration: Path, settings: Settings) -> Iterator[Daemon]:
    """The daemon while the block lasts."""
    with supervising(configuration, settings, configuration.with_suffix(".log")) as supervisor:
        yield Daemon(supervisor)


@contextmanager
def floor(name: str, dsn: str, endpoint: str, queue: str) -> Iterator[Floor]:
    """The floor of that name while the block lasts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.floor", name, dsn, endpoint, queue],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    with process:
        try:
            yield Floor(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _calls(exposition: str, done: int) -> int | None:
    """None while the metrics do not tell of all that was done yet."""
    samples = [
        (sample.name.removeprefix("outboxd_"), sample.labels, sample.value)
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
    ]

    def total(name: str, **labels: str) -> int:
        return round(
            sum(v for n, found, v in samples if n == name and labels.items() <= found.items())
        )

    if total("outbox_published_total") == done:
        return total("outbox_batch_duration_seconds_count", stage="send")
    by_operation = {
        operation: total("sqs_request_duration_seconds_count", operation=operation)
        for operation in ("delete", "extend", "send")
    }
    processed = total("messages_processed_total", outcome="ok")
    if processed == done and by_operation["delete"] >= math.ceil(done / BATCH):
        return total("receives_total", result="messages") + sum(by_operation.values())
    return None
