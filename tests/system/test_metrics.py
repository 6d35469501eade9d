import os
import shutil
import signal
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from outboxd.demo.processes import children_of
from tests.metrics.catalogue import families
from tests.system.scene import Scene, eventually, handler


@pytest.mark.system
def test_the_metrics_of_all_processes_are_one_valid_exposition(scene: Scene) -> None:
    text = exposition_after_work(scene)

    found = {family.name for family in text_string_to_metric_families(text)}
    documented = {name.removesuffix("_total") for name in families()}
    assert found == documented


@pytest.mark.system
def test_a_handlers_own_counter_outlives_its_process(scene: Scene) -> None:
    scene.configure(handler("counted"))
    ids: list[str] = []
    with scene.daemon() as daemon:
        for _ in range(2):
            ids.extend(scene.publish("counted.wanted", 3))
            eventually(lambda: scene.metric("shop_notes_total", kind="plain") == len(ids))
            (pid,) = (c.pid for c in children_of(daemon.pid) if c.role.startswith("consumer"))
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: scene.metric("outboxd_child_restarts_total", reason="signal") == 2)

        assert scene.metric("shop_notes_total", kind="plain") == len(ids) == 6
        assert scene.metric("outboxd_user_metrics_refused_total", reason="name") == 6
    assert sorted(scene.effects("counted")) == sorted(ids)


@pytest.mark.packages
def test_promtool_finds_nothing_wrong_with_the_metrics_under_load(scene: Scene) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is in Debian's package prometheus: see tests/system/install-packages"
    scene.configure(handler("note"), handler("counted"))
    taken: list[str] = []

    def all_done_and_looked_at() -> bool:
        taken.append(scene.exposition())
        return len(scene.effects("note")) == len(scene.effects("counted")) == 150

    with scene.daemon():
        scene.publish("note.wanted", 150)
        scene.publish("counted.wanted", 150)
        eventually(all_done_and_looked_at)

    for text in (taken[0], taken[len(taken) // 2], taken[-1]):
        check = subprocess.run(
            [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        assert check.returncode == 0, check.stdout + check.stderr


def exposition_after_work(scene: Scene) -> str:
    scene.configure(handler("note"))
    with scene.daemon():
        scene.publish("note.wanted", 20)
        eventually(lambda: len(scene.effects("note")) == 20)
        eventually(
            lambda: (
                scene.metric("outboxd_messages_processed_total", outcome="ok") == 20
                and scene.metric("outboxd_outbox_published_total") == 20
            )
        )
        return scene.exposition()
