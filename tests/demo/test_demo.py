"""`outboxd demo` as a command: real processes, real signals, and nothing left behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

MARK = "OUTBOXD_TEST_MARK"
GONE_SECONDS = 5.0
"""How long processes may outlive a demo that was killed."""

MUST_BE_ZERO = (
    "effects_missing",
    "effects_duplicated",
    "dead_letters",
    "outbox_backlog",
    "messages_left",
    "supervisor_exit_code",
)


class Demo:
    """A running `outboxd demo`; every process that it starts carries `mark` in its environment."""

    def __init__(self, *arguments: str, **environ: str) -> None:
        self.mark = f"{MARK}={uuid4()}"
        name, value = self.mark.split("=")
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "outboxd", "demo", *arguments],
            env={**os.environ, **environ, name: value},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until_it_says(self, text: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return
        pytest.fail(f"the demo ended without saying {text!r}")

    def ended(self) -> tuple[int, str, str]:
        """Exit code, output and messages."""
        output, messages = self.process.communicate()
        return self.process.returncode, output, messages

    def processes(self) -> list[str]:
        """The command lines of everything it started that is still there."""
        return [line for line in (command_line(pid, self.mark) for pid in pids()) if line]


def pids() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def command_line(pid: Path, mark: str) -> str:
    try:
        if mark.encode() not in (pid / "environ").read_bytes().split(b"\0"):
            return ""
        return (pid / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@contextmanager
def demo(*arguments: str, **environ: str) -> Iterator[Demo]:
    running = Demo(*arguments, **environ)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def summary_of(output: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(output.splitlines()[-1])
    return told


def assert_all_is_well(demo: Demo, orders: int) -> dict[str, Any]:
    exit_code, output, messages = demo.ended()
    assert exit_code == 0, messages + output
    summary = summary_of(output)
    assert {name: summary[name] for name in MUST_BE_ZERO} == dict.fromkeys(MUST_BE_ZERO, 0)
    assert summary["orders"] == orders
    assert {flow["got"] - flow["expected"] for flow in summary["flows"].values()} == {0}
    assert summary["flows"]["invoices_stored"]["expected"] == orders
    assert summary["events_committed"] == summary["events_published"] > 8 * orders
    assert demo.processes() == []
    return summary


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder with a short name that PostgreSQL's user may enter; `tmp_path` is not."""
    with tempfile.TemporaryDirectory(prefix="ob-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def test_a_bounded_run_loses_nothing_repeats_nothing_and_leaves_nothing(open_folder: Path) -> None:
    with demo(
        "--orders", "60", "--exit-when-drained", "--json", TMPDIR=str(open_folder)
    ) as running:
        summary = assert_all_is_well(running, orders=60)

    assert summary["emails_repeated"] == 0
    assert set(summary["restarts"].values()) == {0}
    assert list(open_folder.iterdir()) == []


def test_killed_children_of_every_role_lose_and_repeat_nothing() -> None:
    with demo("--orders", "60", "--kill-every", "2", "--exit-when-drained", "--json") as running:
        summary = assert_all_is_well(running, orders=60)

    assert summary["kills_by_child"].keys() == {
        "relay",
        "extender",
        "consumer:analytics-events/1",
        "consumer:inventory-events/1",
        "consumer:invoice-jobs/1",
        "consumer:jobs/1",
        "consumer:notification-events/1",
        "consumer:payment-events/1",
        "consumer:shipping-events/1",
    }
    assert summary["restarts"] == summary["kills_by_child"]


def test_a_run_that_does_not_end_in_time_says_what_is_missing() -> None:
    with demo(
        "--orders", "500", "--rate", "10", "--timeout", "2", "--exit-when-drained", "--json"
    ) as running:
        exit_code, output, _ = running.ended()

    assert exit_code == 1
    summary = summary_of(output)
    assert 0 < summary["orders"] < 500
    assert f"{summary['orders']} of 500 orders were made" in summary["problems"]
    assert running.processes() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_open_shop_is_closed_by_a_signal(number: signal.Signals) -> None:
    with demo("--json") as running:
        running.until_it_says("effects")
        running.process.send_signal(number)
        exit_code, output, messages = running.ended()

    assert exit_code == 0, messages
    summary = summary_of(output)
    assert (summary["supervisor_exit_code"], summary["stopped"]) == (0, True)
    assert running.processes() == []


@pytest.mark.parametrize("moment", ["creating", "migrating", "starting the supervisor"])
def test_a_signal_while_it_starts_leaves_nothing(moment: str) -> None:
    with demo() as running:
        running.until_it_says(moment)
        running.process.send_signal(signal.SIGTERM)
        exit_code, _, messages = running.ended()

    assert exit_code == 130
    assert messages.endswith("outboxd demo: stopped before the shop had opened\n")
    assert running.processes() == []


def test_nothing_outlives_a_killed_demo_for_long() -> None:
    with demo() as running:
        running.until_it_says("effects")
        assert any("outboxd.child consumer:" in line for line in running.processes())
        running.process.kill()
        killed_at = time.monotonic()
        while left := running.processes():
            assert time.monotonic() - killed_at < GONE_SECONDS, left
            time.sleep(0.05)


def test_a_supervisor_that_dies_ends_the_demo_with_its_last_words() -> None:
    with demo("--orders", "500", "--exit-when-drained", "--json") as running:
        running.until_it_says("effects")
        kill_supervisor(running)
        exit_code, output, messages = running.ended()

    assert exit_code == 1
    assert "the supervisor ended with exit code -9" in messages
    assert "the supervisor ended with exit code -9" in summary_of(output)["problems"]


def kill_supervisor(running: Demo) -> None:
    for pid in pids():
        if "lifeline run --config" in command_line(pid, running.mark):
            os.kill(int(pid.name), signal.SIGKILL)


def test_a_given_database_server_is_used_and_left_as_it_was(bare_database: str) -> None:
    with demo(
        "--orders", "20", "--exit-when-drained", "--json", "--database-url", bare_database
    ) as running:
        assert_all_is_well(running, orders=20)


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """The URL of a stand-in for AWS that others wrote. (roto's knows no dead letters of rules.)"""
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", str(port)],
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
    try:
        until_it_listens(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the stand-in does not start"
            time.sleep(0.05)


def test_another_stand_in_for_aws_gives_the_same_zeros(endpoint: str) -> None:
    with demo(
        "--orders", "50", "--exit-when-drained", "--json", "--aws-endpoint", endpoint
    ) as running:
        assert_all_is_well(running, orders=50)
