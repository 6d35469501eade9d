"""Processes of a pool that are replaced because they have done, lived or eaten enough."""

import pytest

from tests.system.scene import Scene, eventually, handler
from tests.system.test_reload import change

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

POOL = "consumer:work/1"


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("max_messages = 30", "recycle_messages"),
        ("max_age_seconds = 2", "recycle_age"),
        (f"max_rss_bytes = {200 * 10**6}", "recycle_rss"),
    ],
)
def test_a_process_that_is_due_is_replaced_and_nothing_is_lost_or_doubled(
    scene: Scene, limit: str, reason: str
) -> None:
    scene.configure(handler("fatten"), concurrency=2, visibility=10)
    change(
        scene,
        ("[queues.work]", f"[queues.work]\nrecycle = {{ {limit} }}"),
        ("[supervisor]", "[supervisor]\nheartbeat_interval_seconds = 0.2"),
    )

    with scene.daemon():
        ids = scene.publish("fatten.wanted", 40)
        eventually(lambda: scene.metric("outboxd_child_restarts_total", reason=reason) >= 1)
        ids += scene.publish("fatten.wanted", 10)
        eventually(lambda: len(scene.effects("fatten")) >= 50)
        eventually(lambda: scene.messages_left() == 0)

        restarts = scene.metric("outboxd_child_restarts_total")
        assert restarts == scene.metric(
            "outboxd_child_restarts_total", child=POOL, reason=reason
        ), "nobody else was replaced, and nothing has crashed"
    assert sorted(scene.effects("fatten")) == sorted(ids), "each once"
