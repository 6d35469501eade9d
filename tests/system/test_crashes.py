"""Processes that die with messages in their hands, and handlers that they die of."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from outboxd.demo import processes
from outboxd.demo.supervisor import Supervisor
from tests.system.scene import Scene, encoded, eventually, handler

pytestmark = [pytest.mark.system, pytest.mark.timeout(150)]


def pid_of(daemon: Supervisor, role: str) -> int:
    """The child of that role that runs now."""
    (pid,) = (c.pid for c in processes.children_of(daemon.pid) if c.role.startswith(role))
    return pid


def test_sixteen_messages_in_handlers_at_a_kill_are_handled_again_at_once(
    scene: Scene, tmp_path: Path
) -> None:
    """At a visibility timeout of five minutes, which is what others would wait for."""
    scene.configure(handler("sleep_once", timeout=100), concurrency=16, visibility=300)
    folder = tmp_path / "begun"
    folder.mkdir()
    ids = scene.publish("sleep_once.wanted", 16, seconds=60, folder=str(folder))

    with scene.daemon() as daemon:
        eventually(lambda: len(list(folder.iterdir())) == 16)
        killed_at = time.monotonic()
        os.kill(pid_of(daemon, "consumer"), signal.SIGKILL)
        eventually(lambda: len(scene.effects("sleep_once")) == 16, seconds=15)
        took = time.monotonic() - killed_at
        eventually(lambda: scene.messages_left() == 0)

    assert took < 15
    assert sorted(scene.effects("sleep_once")) == sorted(ids), "each once"
    assert scene.letters() == []
    assert scene.attempts() == 0


def test_messages_on_the_wire_at_a_kill_come_back_after_the_visibility_timeout(
    scene: Scene,
) -> None:
    """Nobody has told the extender of them: SQS alone knows that they were handed out."""
    scene.configure(handler("note"), visibility=8)
    with scene.daemon() as daemon:
        pid = pid_of(daemon, "consumer")
        for _ in range(20):  # until the pool stands still in the middle of a long poll
            os.kill(pid, signal.SIGSTOP)
            scene.send(encoded(id=str(uuid4()), type="note.wanted", payload={}))
            sent_at = time.monotonic()
            with suppress(AssertionError):
                eventually(lambda: scene.in_flight() == 1, seconds=0.5)
                break
            os.kill(pid, signal.SIGCONT)
            eventually(lambda: scene.messages_left() == 0)
        else:
            pytest.fail("no message was on the wire")
        before = len(scene.effects("note"))
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: len(scene.effects("note")) == before + 1, seconds=15)
        assert time.monotonic() - sent_at < 8 + 5


@pytest.mark.parametrize("function", ["kill", "leave"])
def test_a_handler_that_kills_its_process_is_dead_lettered_and_drags_nobody_along(
    scene: Scene, function: str
) -> None:
    scene.configure(handler("note"), handler(function, inbox="off"), visibility=60)
    poison = scene.publish(f"{function}.wanted")
    good = scene.publish("note.wanted", 50)

    with scene.daemon():
        eventually(
            lambda: len(scene.effects("note")) >= 50 and scene.messages_left() == 0, seconds=60
        )
        letters = scene.letters()

    assert sorted(scene.effects("note")) == sorted(good), "each once"
    assert [(letter["event_id"], letter["reason"]) for letter in letters] == [(poison[0], "crash")]
    assert "while this message was handled alone" in letters[0]["error"]


def test_a_hung_handler_is_out_of_attempts_some_time_and_its_neighbours_finish(
    scene: Scene,
) -> None:
    """Two of them at a concurrency of two: nothing would ever be handled again."""
    scene.configure(
        handler("hang", timeout=2), handler("note"), concurrency=2, visibility=30, max_attempts=2
    )
    hung = scene.publish("hang.wanted", 2)

    with scene.daemon():
        eventually(lambda: scene.in_flight() == 2)
        good = scene.publish("note.wanted", 5)
        eventually(
            lambda: len(scene.effects("note")) == 5 and scene.messages_left() == 0, seconds=60
        )
        assert scene.metric("outboxd_child_restarts_total", reason="handler_timeout") >= 1
        assert scene.metric("outboxd_child_restarts_total", reason="crash") == 0
        letters = scene.letters()

    assert sorted(scene.effects("note")) == sorted(good)
    assert scene.effects("hang") == []
    assert {letter["event_id"] for letter in letters} == set(hung)
    assert {letter["reason"] for letter in letters} == {"timeout"}
    assert {letter["handlers"][0]["attempts"] for letter in letters} == {2}


def test_a_hung_handlers_neighbour_finishes_in_the_same_process(scene: Scene) -> None:
    scene.configure(handler("hang", timeout=1), handler("sleep", timeout=30), concurrency=4)
    slow = scene.publish("sleep.wanted", 2, seconds=5)
    with scene.daemon():
        eventually(lambda: scene.in_flight() == 2)
        scene.publish("hang.wanted")
        eventually(lambda: len(scene.effects("sleep")) == 2)
        eventually(lambda: scene.metric("outboxd_child_restarts_total") == 1)
        assert scene.metric("outboxd_inbox_duplicates_total") == 0
        assert sorted(scene.effects("sleep")) == sorted(slow)


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_an_extender_that_dies_or_freezes_costs_no_long_handler_its_lease(
    scene: Scene, fault: signal.Signals
) -> None:
    scene.configure(handler("sleep", timeout=100), concurrency=16, visibility=30)
    ids = scene.publish("sleep.wanted", 16, seconds=50)

    with scene.daemon() as daemon:
        eventually(lambda: scene.in_flight() == 16)
        pid = pid_of(daemon, "extender")
        time.sleep(5)  # so that the next extension is due in the outage
        os.kill(pid, fault)
        if fault is signal.SIGSTOP:
            time.sleep(20)
            with suppress(ProcessLookupError):  # the supervisor has replaced it
                os.kill(pid, signal.SIGCONT)
        eventually(lambda: len(scene.effects("sleep")) == 16, seconds=80)
        eventually(lambda: scene.messages_left() == 0)
        assert scene.metric("outboxd_messages_received_total") == 16, "each was received once"
        assert scene.metric("outboxd_child_restarts_total", child="extender") >= 1

    assert sorted(scene.effects("sleep")) == sorted(ids)


def test_a_frozen_pool_is_noticed_and_replaced(scene: Scene) -> None:
    """SIGSTOP stops its heartbeats, and nobody else is handed what it holds."""
    scene.configure(handler("note"))
    with scene.daemon() as daemon:
        scene.publish("note.wanted")
        eventually(lambda: len(scene.effects("note")) == 1)
        frozen = pid_of(daemon, "consumer")
        os.kill(frozen, signal.SIGSTOP)
        ids = scene.publish("note.wanted", 3)
        eventually(lambda: set(ids) <= set(scene.effects("note")), seconds=90)
        assert scene.metric("outboxd_child_restarts_total", reason="heartbeat") == 1
        eventually(lambda: scene.messages_left() == 0)
    assert len(scene.effects("note")) == 4
