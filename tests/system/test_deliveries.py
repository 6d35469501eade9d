"""Deliveries that SQS repeats, and groups that it keeps in order."""

import os
import signal

import pytest

from outboxd.testing.faults import FaultScript
from tests.system.scene import Scene, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]


def test_a_swallowed_delete_brings_a_duplicate_that_is_deleted_without_running(
    scene: Scene, aws_endpoint: str
) -> None:
    scene.configure(handler("note"), visibility=5)
    with scene.daemon():
        with FaultScript(aws_endpoint).swallow("DeleteMessageBatch", count=1) as swallowed:
            ids = scene.publish("note.wanted")
            eventually(lambda: swallowed.fired == 1)
            eventually(lambda: scene.messages_left() == 0)
        eventually(lambda: scene.metric("outboxd_inbox_duplicates_total") == 1)
        assert scene.metric("outboxd_messages_received_total") == 2
        assert scene.metric("outboxd_handler_duration_seconds_count") == 1, "it ran once"
    assert scene.effects("note") == ids


def test_three_restarts_behind_a_slow_head_cost_its_followers_nothing(scene: Scene) -> None:
    slow = handler("sleep_async", timeout=100)
    # The whole line is in the queue before anybody receives: a head that is received alone locks
    # its group, and its followers are then never in flight.
    scene.configure(fifo=True, visibility=300, max_attempts=2)
    scene.publish("sleep_async.wanted", aggregate="one", seconds=90)
    scene.publish("sleep_async.wanted", 9, aggregate="one")
    with scene.daemon():
        eventually(lambda: scene.visible() == 10)
    scene.configure(slow, fifo=True, visibility=300, max_attempts=2)
    for _ in range(3):
        with scene.daemon() as daemon:
            eventually(lambda: scene.in_flight() == 10)
            os.kill(daemon.pid, signal.SIGTERM)
            eventually(lambda: scene.visible() == 9, seconds=1.5)
            daemon.stop()
        eventually(lambda: scene.visible() == 10, seconds=1)
    assert scene.attempts() == 0
    assert scene.letters() == []
    assert scene.effects("sleep_async") == []


def test_groups_are_handled_in_order_and_beside_each_other(scene: Scene) -> None:
    scene.configure(handler("sleep_async"), fifo=True, concurrency=20)
    expected: dict[str, list[str]] = {}
    for number in range(8):
        for group in "abcde":
            expected.setdefault(group, []).extend(
                scene.publish("sleep_async.wanted", aggregate=group, seconds=0.05, number=number)
            )
    with scene.daemon():
        eventually(lambda: len(scene.effects("sleep_async")) >= 40 and scene.messages_left() == 0)
    effects = scene.effects("sleep_async")
    for ids in expected.values():
        assert [event for event in effects if event in ids] == ids
