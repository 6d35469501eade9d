import os
import signal
import time
from pathlib import Path

import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.demo import processes
from tests.system.scene import Scene, alive, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_sigterm_of_a_loaded_daemon_drains_within_its_grace(scene: Scene) -> None:
    scene.configure(handler("sleep"), concurrency=4, visibility=300)
    ids = scene.publish("sleep.wanted", 60, seconds=0.5)

    with scene.daemon() as daemon:
        eventually(lambda: len(scene.effects("sleep")) >= 4)
        stopped_at = time.monotonic()
        code = daemon.stop()
        took = time.monotonic() - stopped_at

    assert code == ExitCode.OK
    assert took < scene.settings.supervisor.grace_seconds
    assert scene.in_flight() == 0, "no message is left invisible"

    with scene.daemon():
        eventually(lambda: scene.messages_left() == 0 and len(set(scene.effects("sleep"))) == 60)
        eventually(lambda: scene.metric("outboxd_messages_processed_total", outcome="ok") > 0)
        assert scene.metric("outboxd_inbox_duplicates_total") == 0
    assert sorted(scene.effects("sleep")) == sorted(ids), "each once"


def test_a_handler_beyond_the_grace_is_killed_and_its_message_visible_at_once(
    scene: Scene,
) -> None:
    scene.configure(handler("sleep", timeout=100), visibility=300, grace=8)
    scene.publish("sleep.wanted", seconds=90)

    with scene.daemon() as daemon:
        eventually(lambda: scene.in_flight() == 1)
        code = daemon.stop()

    assert code == ExitCode.DRAIN_DEADLINE
    eventually(lambda: scene.in_flight() == 0, seconds=1)
    assert scene.messages_left() == 1


def test_no_process_outlives_a_killed_supervisor(scene: Scene) -> None:
    scene.configure(handler("sleep", timeout=100), visibility=10)
    scene.publish("sleep.wanted", seconds=60)

    with scene.daemon() as daemon:
        eventually(lambda: scene.in_flight() == 1)
        children = [child.pid for child in processes.children_of(daemon.pid)]
        assert len(children) == 3
        os.kill(daemon.pid, signal.SIGKILL)
        eventually(lambda: not any(alive(pid) for pid in children), seconds=10)


@pytest.mark.parametrize("role", ["relay", "extender", "consumer:work/1"])
def test_a_killed_child_comes_back_and_nothing_is_lost_or_doubled(scene: Scene, role: str) -> None:
    scene.configure(handler("sleep"), concurrency=4, visibility=5)
    ids = scene.publish("sleep.wanted", 40, seconds=0.1)

    with scene.daemon() as daemon:
        eventually(lambda: len(scene.effects("sleep")) >= 4)
        os.kill(pid_of(daemon.pid, role), signal.SIGKILL)
        scene.publish("sleep.wanted", 20, seconds=0.1)
        eventually(lambda: len(set(scene.effects("sleep"))) == 60 and scene.messages_left() == 0)
        eventually(lambda: scene.metric("outboxd_child_restarts_total", child=role) == 1)
        eventually(lambda: scene.metric("outboxd_ready") == 1)

    effects = scene.effects("sleep")
    assert len(effects) == len(set(effects)), "each once"
    assert set(ids) <= set(effects)


def pid_of(supervisor: int, role: str) -> int:
    for child in processes.children_of(supervisor):
        command = Path(f"/proc/{child.pid}/cmdline").read_bytes().decode().split("\0")
        if role in command:
            return int(child.pid)
    raise AssertionError(f"no child {role}")
