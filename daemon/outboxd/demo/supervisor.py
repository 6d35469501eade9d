"""The daemon itself, run as anybody would run it, and stopped as systemd would stop it."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from outboxd.core.settings import Settings
from outboxd.demo import processes
from outboxd.demo.errors import DemoError
from outboxd.demo.http import get

READY_SECONDS = 60.0
POLL_SECONDS = 0.05
KILL_MARGIN_SECONDS = 5.0
"""How long beyond its own grace the supervisor may take before it is killed."""

LAST_WORDS = 15


class Listening(msgspec.Struct, frozen=True, tag_field="message", tag="listening"):
    """The line of the log that tells the address of the HTTP endpoint, a URL."""

    address: str


class Supervisor:
    """A running `outboxd run`; everything it says goes to `log`."""

    def __init__(self, process: subprocess.Popen[bytes], settings: Settings, log: Path) -> None:
        self._process = process
        self._grace_seconds = settings.supervisor.grace_seconds
        self._log = log
        self.address = ""
        """Where its HTTP endpoint listens, as `host:port`; known once it is ready."""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        """Of the HTTP endpoint; 0 while it is not known."""
        return int(self.address.rpartition(":")[2] or "0")

    def last_words(self) -> str | None:
        """What it said last, if it has ended although nobody asked for that; else None."""
        code = self._process.poll()
        if code is None:
            return None
        return f"the supervisor ended with exit code {code}:\n{self._log_tail()}"

    def await_ready(self, stopping: Callable[[], bool]) -> None:
        """Wait until /readyz says so, or until `stopping`. Raises DemoError if it never does."""
        deadline = time.monotonic() + READY_SECONDS
        while not (self._ready() or stopping()):
            if (words := self.last_words()) is not None:
                raise DemoError(words)
            if time.monotonic() > deadline:
                raise DemoError(
                    f"the supervisor was not ready after {READY_SECONDS:g} s:\n{self._log_tail()}"
                )
            time.sleep(POLL_SECONDS)

    def ask(self, path: str) -> str | None:
        """What /metrics or another page says, whatever its status; None while nobody answers."""
        answer = get(self.address, path) if self.address else None
        return None if answer is None else answer[1]

    def stop(self) -> int:
        """SIGTERM, then wait for the drain; the exit code. Later calls only tell it again."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(self._grace_seconds + KILL_MARGIN_SECONDS)
            except subprocess.TimeoutExpired:
                self._kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return self._process.wait()

    def _log_tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LAST_WORDS:])

    def _ready(self) -> bool:
        self.address = self.address or self._listening_at() or ""
        answer = get(self.address, "/readyz") if self.address else None
        return answer is not None and answer[0] == 200

    def _listening_at(self) -> str | None:
        """What it logged when it began to listen: the only place that knows which port 0 became."""
        for line in self._log.read_text(errors="replace").splitlines():
            try:
                fact = msgspec.json.decode(line, type=Listening)
            except msgspec.DecodeError:
                continue
            return urlsplit(fact.address).netloc
        return None

    def _kill(self) -> None:
        """Its children would follow by themselves, but only some seconds later."""
        for child in processes.children_of(self.pid):
            processes.kill(child, self.pid)
        self._process.kill()


@contextmanager
def supervising(configuration: Path, settings: Settings, log: Path) -> Iterator[Supervisor]:
    """`outboxd run` while the block lasts."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "outboxd.demo.lifeline",
                "run",
                "--config",
                str(configuration),
            ],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=configuration.parent,
            start_new_session=True,  # a Ctrl-C in the terminal is the demo's to translate
        )
    supervisor = Supervisor(process, settings, log)
    try:
        yield supervisor
    finally:
        supervisor.stop()
