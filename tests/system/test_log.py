"""The daemon's standard output: the log and nothing but the log, whoever reads it or does not."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.demo.http import get
from tests.system.scene import Scene, eventually, free_port, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


@contextmanager
def ready(
    scene: Scene, stdout: int | IO[bytes], redirections: str = "", stderr: int | IO[bytes] = 2
) -> Iterator["subprocess.Popen[bytes]"]:
    """The daemon with this standard output, ready."""
    port = free_port()
    scene.configure(handler("note"), handler("reject"), port=port)
    run = [sys.executable, "-P", "-m", "outboxd", "run", "--config", str(scene.configuration)]
    process = subprocess.Popen(
        ["sh", "-c", f"exec {shlex.join(run)} {redirections}"],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
    )
    try:
        eventually(lambda: (get(f"127.0.0.1:{port}", "/readyz") or (0,))[0] == 200)
        yield process
    finally:
        process.kill()
        process.wait()


def _fill(pipe: int) -> None:
    os.set_blocking(pipe, False)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x" * 4096)
    os.set_blocking(pipe, True)


def test_every_line_is_a_fact_and_names_its_event_and_its_child(scene: Scene) -> None:
    log, errors = scene.directory / "out.log", scene.directory / "err.log"
    with (
        log.open("wb") as output,
        errors.open("wb") as error,
        ready(scene, output, "", error) as run,
    ):
        (rejected,) = scene.publish("reject.wanted")
        eventually(lambda: "message dead-lettered" in log.read_text())
        run.terminate()
        assert run.wait(30) == ExitCode.OK

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        assert line.keys() >= {"time", "level", "process", "logger", "message"}
    (letter,) = [line for line in lines if line["message"] == "message dead-lettered"]
    assert letter["child"] == letter["process"] == "consumer:work/1"
    assert (letter["queue"], letter["event_id"]) == ("work", rejected)
    assert {line["child"] for line in lines if line["message"] == "child changed state"} == {
        "relay",
        "extender",
        "consumer:work/1",
    }
    assert errors.read_text() == ""


def test_a_pipe_that_nobody_reads_stops_neither_the_work_nor_the_stop(scene: Scene) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb") as full:
        _fill(writing)
        with ready(scene, full) as run:
            scene.publish("reject.wanted", 20)
            scene.publish("note.wanted", 20)
            eventually(lambda: len(scene.effects("note")) == 20)
            run.terminate()
            assert run.wait(30) == ExitCode.OK


def test_closed_standard_streams_are_nobody_elses_number(scene: Scene) -> None:
    with ready(scene, subprocess.DEVNULL, "<&- >&- 2>&-") as run:
        targets = [os.readlink(f"/proc/{run.pid}/fd/{number}") for number in range(3)]
        assert targets == [os.devnull] * 3
        scene.publish("note.wanted", 3)
        eventually(lambda: len(scene.effects("note")) == 3)
        run.terminate()
        assert run.wait(30) == ExitCode.OK
