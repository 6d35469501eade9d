"""A new configuration under load: nothing lost, nothing doubled, and the old one kept when the new
one cannot be used."""

import os
import random
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from outboxd.cli.main import main
from outboxd.demo.http import get
from tests.system.scene import Scene, eventually, handler
from tests.system.test_stopping import pid_of

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

MORE_ROUTE = """
[[relay.routes]]
events = "note.*"
to = ["sqs:more"]
"""
MORE_QUEUE = """
[queues.more]
wait_seconds = 1
[[queues.more.handlers]]
event = "note.wanted"
handler = "scenes:note"
name = "note"
"""
POOL = "consumer:work/1"


def reload(scene: Scene, *options: str) -> int:
    """Without the configuration, which this command would refuse by itself if it is broken."""
    return main(["reload", *options, "--socket", str(scene.directory / "run" / "control.sock")])


def ordered(scene: Scene, *words: str) -> int:
    return main([*words, "--config", str(scene.configuration)])


def change(scene: Scene, *replacements: tuple[str, str], more: str = "") -> None:
    """Replace the file as an editor or a deployment does: at once."""
    text = scene.configuration.read_text()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    new_file = scene.configuration.with_suffix(".new")
    new_file.write_text(text + more)
    new_file.rename(scene.configuration)


@contextmanager
def under_load(scene: Scene, *handlers: str) -> Iterator[list[str]]:
    """A daemon that is in the middle of 100 events; at the end each must have had its effect once,
    whatever was done to it, and whatever the list holds by then."""
    scene.configure(handler("sleep"), *handlers, concurrency=4, visibility=10)
    run = scene.directory / "run" / "control.sock"
    change(scene, ("[supervisor]", f'[supervisor]\ncontrol_socket = "{run}"'))
    ids = scene.publish("sleep.wanted", 100, seconds=0.05)
    with scene.daemon():
        eventually(lambda: len(scene.effects("sleep")) >= 8)
        yield ids
        eventually(lambda: len(set(scene.effects("sleep"))) >= len(ids))
        eventually(lambda: scene.messages_left() == 0)
        eventually(lambda: scene.metric("outboxd_ready") == 1)
    assert sorted(scene.effects("sleep")) == sorted(ids), "each once"


def pids(scene: Scene) -> dict[str, int]:
    """Of each child; whoever serves /healthz knows them."""
    answer = get(scene.address, "/healthz?verbose")
    assert answer is not None
    return {name: int(pid) for name, pid in re.findall(r"^(\S+)\t.*pid=(\d+)", answer[1], re.M)}


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def successful(scene: Scene) -> bool:
    return scene.metric("outboxd_config_last_reload_successful") == 1


def test_a_changed_concurrency_restarts_that_pool_alone(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    with under_load(scene) as ids:
        before = pids(scene)
        change(scene, ("concurrency = 4", "concurrency = 8"))
        assert reload(scene) == 0
        assert capsys.readouterr().out.endswith(f"reloaded: restarted {POOL}\n")
        after = pids(scene)
        eventually(lambda: scene.metric("outboxd_concurrency_limit", queue="work") == 8)
        ids += scene.publish("sleep.wanted", 20, seconds=0.05)

        assert after[POOL] != before[POOL]
        assert {**after, POOL: 0} == {**before, POOL: 0}
        assert scene.metric("outboxd_child_restarts_total", child=POOL, reason="reload") == 1
        assert successful(scene)


def test_a_queue_comes_and_goes(scene: Scene) -> None:
    with under_load(scene) as ids:
        before = pids(scene)
        change(scene, ("[[relay.routes]]", MORE_ROUTE + "\n[[relay.routes]]"), more=MORE_QUEUE)
        assert ordered(scene, "provision") == 0
        assert reload(scene) == 0
        notes = scene.publish("note.wanted", 20)
        eventually(lambda: sorted(scene.effects("note")) == sorted(notes))
        assert pids(scene)[POOL] == before[POOL], "it is none of its business"
        assert set(pids(scene)) == {*before, "consumer:more/1"}
        assert scene.metric("outboxd_child_up", child="consumer:more/1") == 1

        scene.publish("note.wanted", 3)
        ids += scene.publish("sleep.wanted", 20, seconds=0.05)
        change(scene, (MORE_QUEUE, ""), (MORE_ROUTE, ""))
        assert reload(scene) == 0
        assert set(pids(scene)) == set(before)
        assert pids(scene)[POOL] == before[POOL]
        assert 'child="consumer:more/1",kind="consumer"' not in scene.exposition()
    effects = scene.effects("note")
    assert len(effects) == len(set(effects))


def test_a_broken_file_changes_nothing_not_even_after_a_crash(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    with under_load(scene):
        before = pids(scene)
        change(scene, ("concurrency = 4", "concurrency = none"))
        assert reload(scene) == 1
        assert "not reloaded, nothing is changed" in capsys.readouterr().err
        assert pids(scene) == before
        assert not successful(scene)

        os.kill(before[POOL], signal.SIGKILL)
        eventually(lambda: pids(scene).get(POOL, before[POOL]) != before[POOL])
        eventually(lambda: scene.metric("outboxd_ready") == 1)
        change(scene, ("concurrency = none", "concurrency = 4"))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"scenes:sleep"', '"scenes:sleeep"', "no 'sleeep'"),
        ("port = 0", "port = 1", "[http] port: a reload cannot change it"),
        ('queue_name = "work"', 'queue_name = "works"', "[queues.work] queue_name: a reload"),
    ],
)
def test_what_cannot_work_or_cannot_be_reloaded_is_refused_with_a_reason(
    scene: Scene, capsys: pytest.CaptureFixture[str], old: str, new: str, why: str
) -> None:
    with under_load(scene):
        before = pids(scene)
        change(scene, (old, new), ("concurrency = 4", "concurrency = 5"))
        assert reload(scene) == 1
        assert why in capsys.readouterr().err
        assert pids(scene) == before
        assert scene.metric("outboxd_config_reloads_total", result="invalid") == 1
        change(scene, (new, old))
        assert reload(scene) == 0
        assert successful(scene)


def test_a_handler_that_fails_at_its_start_brings_the_old_configuration_back(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = handler("note").replace("scenes:note", "stubborn:Stubborn")
    with under_load(scene) as ids:
        before = pids(scene)
        change(scene, ("poll_max_seconds = 0.1", "poll_max_seconds = 0.2"), more=failing)
        assert reload(scene) == 1
        told = capsys.readouterr().err
        assert f"the old configuration is in use again: {POOL} did not become ready" in told
        assert "no licence" in told
        eventually(lambda: scene.metric("outboxd_ready") == 1)
        assert pids(scene)["relay"] != before["relay"], "it had the new one, and went back"
        assert scene.metric("outboxd_config_reloads_total", result="child_not_ready") == 1
        assert scene.metric("outboxd_child_restarts_total", reason="reload") == 3
        ids += scene.publish("sleep.wanted", 20, seconds=0.05)


def test_all_restarts_every_process_for_new_code(scene: Scene) -> None:
    with under_load(scene):
        before = pids(scene)
        assert reload(scene, "--all") == 0
        after = pids(scene)

        assert after.keys() == before.keys()
        assert not set(after.values()) & set(before.values())


def test_sighups_during_a_reload_are_one_more(scene: Scene) -> None:
    with under_load(scene):
        change(scene, ("concurrency = 4", "concurrency = 5"))
        for _ in range(10):
            os.kill(parent_of(pids(scene)["relay"]), signal.SIGHUP)
        # A signal that comes before the first one was looked at is the same one.
        eventually(lambda: scene.metric("outboxd_config_reloads_total", result="ok") >= 1)
        assert reload(scene) == 0
        assert scene.metric("outboxd_config_reloads_total", result="ok") in (2, 3)
        assert scene.metric("outboxd_child_starts_total", child=POOL) == 2


def test_a_stop_during_a_reload_wins(scene: Scene) -> None:
    scene.configure(handler("sleep_async", timeout=100), concurrency=4, visibility=30)
    scene.publish("sleep_async.wanted", 2, seconds=60)
    with scene.daemon() as daemon:
        eventually(lambda: scene.in_flight() == 2)
        change(scene, ("concurrency = 4", "concurrency = 5"))
        os.kill(daemon.pid, signal.SIGHUP)
        eventually(lambda: scene.metric("outboxd_child_state", child=POOL, state="draining") == 1)
        assert pid_of(daemon.pid, POOL)
        code = daemon.stop()
    assert code == 5, "its handlers are longer than the grace"
    assert scene.visible() == 2, "given back"


@pytest.mark.timeout(240)
def test_reloads_amid_kills_lose_and_double_nothing(scene: Scene) -> None:
    """A child that is killed before it is ready fails its reload, which then goes back."""
    with under_load(scene) as ids:
        change(scene, ("crashes = 100", "crashes = 100\nfailed_starts = 100"))
        assert reload(scene) == 0
        stopped = threading.Event()
        dice = random.Random(6)

        def kill_now_and_then() -> None:
            while not stopped.wait(1.5):
                living = sorted(pids(scene).values())
                with suppress(ProcessLookupError, IndexError):  # it has ended, or all have
                    os.kill(dice.choice(living), signal.SIGKILL)

        killer = threading.Thread(target=kill_now_and_then)
        killer.start()
        ended = []
        for number in range(4):
            old, new = ("= 4", "= 6") if number % 2 == 0 else ("= 6", "= 4")
            change(scene, (f"concurrency {old}", f"concurrency {new}"))
            ended.append(reload(scene, "--all"))
            ids += scene.publish("sleep.wanted", 10, seconds=0.05)
        stopped.set()
        killer.join()
        results = [
            scene.metric("outboxd_config_reloads_total", result=result)
            for result in ("ok", "child_not_ready")
        ]
        assert results == [ended.count(0) + 1, ended.count(1)]
        assert reload(scene) == 0
