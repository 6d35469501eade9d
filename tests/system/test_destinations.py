"""Queues, a topic and a bus side by side: what one of them suffers concerns nobody else."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from outboxd.demo import processes
from outboxd.demo.supervisor import Supervisor
from tests.system.roads_scene import ROADS, RoadsScene, now
from tests.system.scene import eventually

OUTAGE_SECONDS = float(os.environ.get("OUTAGE_SECONDS", "6"))
BEFORE_SECONDS = 3.0
BUS_LOOK_SECONDS = 10.0
"""How often the relay asks whether its bus is still there; EventBridge drops events meanwhile."""

pytestmark = [pytest.mark.system, pytest.mark.timeout(180 + 2 * OUTAGE_SECONDS)]


@pytest.fixture
def roads(database: str, aws_endpoint: str, tmp_path: Path) -> RoadsScene:
    return RoadsScene(database, aws_endpoint, tmp_path)


@contextmanager
def topic_deleted(scene: RoadsScene) -> Iterator[None]:
    scene.delete_topic()
    yield
    scene.provision()


@contextmanager
def bus_deleted(scene: RoadsScene) -> Iterator[None]:
    scene.delete_bus()
    time.sleep(BUS_LOOK_SECONDS)
    yield
    scene.provision()


@contextmanager
def queue_denied(scene: RoadsScene) -> Iterator[None]:
    with scene.aws.faults.access_denied("SendMessageBatch", queue="ordered.fifo", count=None):
        yield


@pytest.mark.parametrize(
    ("outage", "concerned"),
    [
        (topic_deleted, "topic.sent"),
        (bus_deleted, "bus.sent"),
        (queue_denied, "ordered.sent"),
    ],
)
def test_a_destination_that_is_away_under_load_costs_nothing_and_holds_up_no_other(
    roads: RoadsScene,
    outage: Callable[[RoadsScene], AbstractContextManager[None]],
    concerned: str,
) -> None:
    """What was measured is in report.txt in the test's folder; OUTAGE_SECONDS=60 for a long one."""
    with roads.daemon():
        with roads.load(per_second=10):
            began = now()
            time.sleep(BEFORE_SECONDS)
            cut = now()
            with outage(roads):
                time.sleep(OUTAGE_SECONDS)
                waiting = roads.pending(concerned)
                back = now()
            time.sleep(BEFORE_SECONDS)
        eventually(roads.drained, seconds=60)
        drained = now()

    assert waiting > OUTAGE_SECONDS * 10 / 2
    assert roads.ask("SELECT sum(attempts), count(dead_at) FROM outboxd.outbox_events") == [(0, 0)]
    assert roads.ask("SELECT count(*) FROM outboxd.handler_failures") == [(0,)]
    # What was put on a bus that was gone is gone, until the relay has looked.
    lost = (cut, cut + BUS_LOOK_SECONDS + 2) if outage is bus_deleted else (0.0, 0.0)
    for type, handlers in ROADS.items():
        for handler in handlers:
            arrived = roads.arrived(handler)
            assert len(arrived) == len(set(arrived)), f"{handler} was done twice with an event"
            assert set(roads.stored(type)) >= set(arrived)
            if type == concerned:
                assert set(arrived) >= set(roads.stored(type, *lost))
            else:
                assert arrived == roads.stored(type)
    assert roads.inversions("ordered") == 0
    assert len(roads.arrived("plain")) * len(ROADS) >= 200
    report = [f"outage {back - cut:.1f} s, {waiting} waiting, drained {drained - back:.1f} s later"]
    for type in ROADS.keys() - {concerned}:
        before = roads.median_delay(type, began, cut)
        meanwhile = roads.median_delay(type, cut, back)
        report.append(f"{type} p50 {before * 1e3:.0f} -> {meanwhile * 1e3:.0f} ms")
        assert meanwhile <= 3 * before + 0.05
    report.append(f"{len(roads.stored('plain.sent'))} events of each type")
    (roads.directory / "report.txt").write_text("\n".join(report))


def test_killed_relays_and_pools_lose_nothing_and_do_nothing_twice(roads: RoadsScene) -> None:
    with roads.daemon() as daemon, roads.load(per_second=20):
        for _ in range(3):
            for role in ("relay", "consumer:bridged", "consumer:ordered", "consumer:wrapped"):
                killed(daemon, role)
                time.sleep(0.5)
        eventually(lambda: roads.metric("outboxd_child_restarts_total") >= 12)
        eventually(lambda: len(roads.arrived("bridged")) >= 150)

    with roads.daemon():
        eventually(roads.drained, seconds=60)

    for type, handlers in ROADS.items():
        for handler in handlers:
            assert roads.arrived(handler) == roads.stored(type)
    assert roads.inversions("ordered") == 0
    assert roads.ask("SELECT sum(attempts), count(dead_at) FROM outboxd.outbox_events") == [(0, 0)]


def killed(daemon: Supervisor, role: str) -> None:
    """SIGKILL the child of that role, as soon as there is one."""

    def found() -> bool:
        for child in processes.children_of(daemon.pid):
            if child.role.partition("/")[0] == role:
                return processes.kill(child, daemon.pid)
        return False

    eventually(found)
