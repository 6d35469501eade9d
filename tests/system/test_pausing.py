import os
import signal
import time

import pytest

from outboxd.cli.main import main
from outboxd.demo.http import get
from tests.system.scene import Scene, eventually, handler
from tests.system.test_stopping import pid_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

CHILD = "consumer:work/1"


def order(scene: Scene, *words: str) -> None:
    assert main([*words, "--config", str(scene.configuration)]) == 0


def listen_for_orders(scene: Scene) -> None:
    text = scene.configuration.read_text()
    socket = scene.directory / "run" / "control.sock"
    setting = f'[supervisor]\ncontrol_socket = "{socket}"'
    scene.configuration.write_text(text.replace("[supervisor]", setting))


def test_a_pause_outlives_a_killed_pool_and_the_messages_wait_for_the_resume(scene: Scene) -> None:
    scene.configure(handler("note"))
    listen_for_orders(scene)

    with scene.daemon() as daemon:
        order(scene, "pause", "work")
        # The receive that was under way dies with its process; the next one is told from the start.
        os.kill(pid_of(daemon.pid, CHILD), signal.SIGKILL)
        eventually(lambda: scene.metric("outboxd_child_starts_total", child=CHILD) == 2)
        eventually(lambda: scene.metric("outboxd_child_up", child=CHILD) == 1)
        ids = scene.publish("note.wanted", 5)
        eventually(lambda: scene.messages_left() == 5)
        since = time.time()
        beat = "outboxd_child_last_heartbeat_timestamp_seconds"
        eventually(lambda: scene.metric(beat, child=CHILD) > since + 2)

        assert scene.messages_left() == 5
        assert scene.in_flight() == 0
        assert scene.metric("outboxd_queue_paused", queue="work") == 1
        ready = get(scene.address, "/readyz")
        assert ready is not None
        assert ready[0] == 200

        order(scene, "resume", "work")
        eventually(lambda: sorted(scene.effects("note")) == sorted(ids))
        assert scene.metric("outboxd_queue_paused", queue="work") == 0
    assert not (scene.directory / "run" / "control.sock").exists(), "taken away at the stop"
