import shutil
import subprocess

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.system.scene import Scene, eventually, handler

EXPECTED = {
    "outboxd_build_info",
    "outboxd_child_up",
    "outboxd_child_restarts",
    "outboxd_child_resident_memory_bytes",
    "outboxd_queue_messages",
    "outboxd_queue_dlq_messages",
    "outboxd_messages_received",
    "outboxd_messages_processed",
    "outboxd_retries",
    "outboxd_dead_letters",
    "outboxd_inbox_duplicates",
    "outboxd_handler_duration_seconds",
    "outboxd_end_to_end_latency_seconds",
    "outboxd_outbox_pending_rows",
    "outboxd_outbox_oldest_pending_age_seconds",
    "outboxd_outbox_published",
    "outboxd_visibility_extensions",
}


@pytest.mark.system
def test_the_metrics_of_all_processes_are_one_valid_exposition(scene: Scene) -> None:
    text = exposition_after_work(scene)

    families = {family.name for family in text_string_to_metric_families(text)}
    assert families >= EXPECTED


@pytest.mark.packages
def test_promtool_finds_nothing_wrong_with_the_metrics(scene: Scene) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is in Debian's package prometheus: see tests/system/install-packages"
    text = exposition_after_work(scene)

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
