import os
import signal
import time

import pytest

from tests.system.scene import Scene, eventually, handler
from tests.system.test_stopping import pid_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_a_supervisor_that_stood_still_past_a_heartbeat_deadline_ends_no_healthy_child(
    scene: Scene,
) -> None:
    """It wakes when heartbeats are overdue by less than half of the deadline, and they wait in its
    sockets."""
    scene.configure(handler("note"))
    deadline = scene.settings.supervisor.heartbeat_deadline_seconds

    with scene.daemon() as daemon:
        os.kill(daemon.pid, signal.SIGSTOP)
        time.sleep(deadline + 1)
        os.kill(daemon.pid, signal.SIGCONT)
        ids = scene.publish("note.wanted", 20)
        eventually(lambda: sorted(scene.effects("note")) == sorted(ids))

        assert scene.metric("outboxd_child_restarts_total") == 0


def test_a_relay_that_hangs_soon_after_its_start_is_replaced_after_its_heartbeat_deadline(
    scene: Scene,
) -> None:
    scene.configure(handler("note"))
    deadline = scene.settings.supervisor.heartbeat_deadline_seconds

    with scene.daemon() as daemon:
        os.kill(pid_of(daemon.pid, "relay"), signal.SIGSTOP)
        eventually(
            lambda: scene.metric("outboxd_child_restarts_total", child="relay") == 1,
            seconds=deadline + 10,
        )
