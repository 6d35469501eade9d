"""Children that do what children should not: each ends as it should, in time, and leaves nobody."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.demo.http import get
from tests.system.scene import Scene, eventually, free_port, handler
from tests.system.test_reload import change
from tests.system.test_stopping import pid_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

HOSTILE = handler("do_nothing", event="*", inbox="off").replace("scenes:", "hostile_imports:")


class Launched:
    """An `outboxd run`, and all that descends from it: they share a session of their own."""

    def __init__(self, scene: Scene) -> None:
        self.log = scene.directory / "run.log"
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "outboxd", "run", "--config", scene.configuration],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def descendants(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                state, _, _, session = (
                    entry.joinpath("stat").read_text().rpartition(")")[2].split()[:4]
                )
            except OSError:
                continue
            if int(session) == self.process.pid and state != "Z":
                found.append(int(entry.name))
        return found


@contextmanager
def launched(scene: Scene) -> Iterator[Launched]:
    launched = Launched(scene)
    try:
        yield launched
    finally:
        for pid in launched.descendants():
            os.kill(pid, signal.SIGKILL)
        launched.process.wait()


def configure(scene: Scene, *, port: int = 0, start_deadline: float = 60) -> None:
    scene.configure(HOSTILE, port=port, grace=7)
    settings = (
        f"[supervisor]\nstart_deadline_seconds = {start_deadline}\nfailed_starts = 2\n"
        "backoff_cap_seconds = 0.2"
    )
    change(scene, ("[supervisor]", settings))


@pytest.mark.parametrize(
    ("behaviour", "starts", "told"),
    [
        ("sleep", 2, "startup_timeout"),
        ("hang", 2, "startup_timeout"),
        ("exit", 2, "crash"),
        ("raise", 1, "no such table: customers"),
    ],
)
def test_a_pool_that_never_becomes_ready_ends_the_daemon_with_3(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, behaviour: str, starts: int, told: str
) -> None:
    monkeypatch.setenv("HOSTILE_IMPORT", behaviour)
    port = free_port()
    configure(scene, port=port, start_deadline=8 if told == "startup_timeout" else 60)

    with launched(scene) as daemon:
        answers: set[int] = set()
        while daemon.process.poll() is None:
            if (answer := get(f"127.0.0.1:{port}", "/readyz")) is not None:
                answers.add(answer[0])
            time.sleep(0.05)
        log = daemon.log.read_text()

        assert daemon.process.returncode == ExitCode.NEVER_READY
        assert answers == {503}, "all along"
        started = '"child":"consumer:work/1","state":"starting"'
        assert log.count(started) == starts
        assert told in log
        eventually(lambda: daemon.descendants() == [], seconds=1)


def test_a_child_that_ignores_sigterm_hears_the_drain(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTILE_IMPORT", "ignore")
    port = free_port()
    configure(scene, port=port)

    with launched(scene) as daemon:
        eventually(lambda: (get(f"127.0.0.1:{port}", "/readyz") or (0,))[0] == 200)
        daemon.process.terminate()
        assert daemon.process.wait(10) == ExitCode.OK
        assert daemon.descendants() == []


def test_a_stopped_child_cannot_keep_the_daemon(scene: Scene) -> None:
    port = free_port()
    configure(scene, port=port)

    with launched(scene) as daemon:
        eventually(lambda: (get(f"127.0.0.1:{port}", "/readyz") or (0,))[0] == 200)
        os.kill(pid_of(daemon.process.pid, "consumer:work/1"), signal.SIGSTOP)
        began = time.monotonic()
        daemon.process.terminate()
        assert daemon.process.wait(20) == ExitCode.DRAIN_DEADLINE
        assert time.monotonic() - began < 7 + 2, "its grace"
        assert daemon.descendants() == []


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_sigterm_in_the_first_half_second_ends_everything(scene: Scene, first: int) -> None:
    configure(scene)

    for milliseconds in range(first, 501, 100):
        with launched(scene) as daemon:
            time.sleep(milliseconds / 1000)
            daemon.process.terminate()
            code = daemon.process.wait(20)

            assert code in (ExitCode.OK, -signal.SIGTERM), milliseconds
            eventually(lambda: daemon.descendants() == [], seconds=6)


def test_out_of_memory_the_kernel_takes_a_child_first(scene: Scene) -> None:
    port = free_port()
    configure(scene, port=port)

    with launched(scene) as daemon:
        eventually(lambda: (get(f"127.0.0.1:{port}", "/readyz") or (0,))[0] == 200)
        children = set(daemon.descendants()) - {daemon.process.pid}

        assert len(children) == 3
        assert {score(pid) - score(daemon.process.pid) for pid in children} == {300}


def score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def test_sigusr1_has_every_process_write_its_stacks_down_and_nobody_ends(scene: Scene) -> None:
    port = free_port()
    configure(scene, port=port)

    with launched(scene) as daemon:
        eventually(lambda: (get(f"127.0.0.1:{port}", "/readyz") or (0,))[0] == 200)
        before = daemon.descendants()
        daemon.process.send_signal(signal.SIGUSR1)
        eventually(lambda: daemon.log.read_text().count('childhood.py", line') >= 3)

        assert 'cli/run.py", line' in daemon.log.read_text(), "the supervisor's own"
        assert sorted(daemon.descendants()) == sorted(before)
        daemon.process.terminate()
        assert daemon.process.wait(10) == ExitCode.OK
