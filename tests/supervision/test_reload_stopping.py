"""What the service manager hears of a reload, and a stop that comes in the middle of one."""

import os
import signal
import socket
from functools import partial
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import (
    QueueSettings,
    Settings,
    SupervisorSettings,
)
from outboxd.supervision.control import serve_control
from outboxd.supervision.control_socket import ControlSocket
from outboxd.supervision.process import Spawn
from outboxd.supervision.sd_notify import Notifier
from tests.supervision.reload_scene import (
    HANDLER,
    QUEUE,
    Scene,
    running,
    with_queues,
)
from tests.supervision.scene import (
    QUICK,
)
from tests.supervision.scripted_child import UNLUCKY

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


@pytest.fixture
def manager(tmp_path: Path) -> socket.socket:
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind(str(tmp_path / "notify"))
    receiver.setblocking(False)
    return receiver


def told(manager: socket.socket) -> list[str]:
    """The first words of what was told, extensions of time left out."""
    heard: list[str] = []
    while True:
        try:
            heard.append(manager.recv(4096).decode())
        except BlockingIOError:
            return [each for each in heard if not each.startswith("EXTEND_TIMEOUT_USEC")]


def words(datagrams: list[str]) -> list[str]:
    keywords = [each.partition("=")[0] for each in datagrams]
    return [word for word in keywords if word != "STATUS"]


@pytest.mark.parametrize("outcome", ["good", "unready", "broken"])
async def test_the_service_manager_is_told_of_begin_and_end_in_every_outcome(
    spawn: Spawn, manager: socket.socket, outcome: str
) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    with manager:
        async with running(spawn, notifier=notifier) as scene:
            told(manager)
            match outcome:
                case "good":
                    scene.source.settings = with_queues(new=QUEUE)
                case "unready":
                    scene.source.settings = with_queues(kind=replace(QUEUE, concurrency=UNLUCKY))
                case _:
                    scene.source.problems = ["[x]: unknown"]
            os.kill(os.getpid(), signal.SIGHUP)
            await scene.facts.until(
                lambda f: any(each.startswith("reloaded ") for each in f.history)
            )
            datagrams = told(manager)
            assert words(datagrams) == ["RELOADING", "READY"]
            assert int(datagrams[0].splitlines()[1].removeprefix("MONOTONIC_USEC=")) > 0
            assert ("not reloaded" in datagrams[-1]) is (outcome != "good")
        assert words(told(manager)) == ["STOPPING"]


async def test_a_stop_during_a_reload_wins_and_is_never_followed_by_ready(
    spawn: Spawn, manager: socket.socket
) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    slow = QueueSettings(handlers=(HANDLER,), wait_seconds=0)
    settings = Settings(supervisor=QUICK, queues={"slow_to_drain": slow})
    with manager:
        async with running(spawn, settings, notifier) as scene:
            told(manager)
            scene.source.settings = replace(
                settings, queues={"slow_to_drain": replace(slow, concurrency=2)}
            )
            os.kill(os.getpid(), signal.SIGHUP)
            name = "consumer:slow_to_drain/1"
            await scene.facts.until(lambda f: f"{name} draining" in f.history)
            scene.supervisor.stop("test")
        assert words(told(manager)) == ["RELOADING", "STOPPING"]
    assert scene.run.code is ExitCode.OK
    assert scene.starts() == [], "nothing is started any more"


async def test_a_stop_shortens_the_time_of_a_child_that_drains_for_a_reload(spawn: Spawn) -> None:
    patient = SupervisorSettings(grace_seconds=2, escalation_seconds=1)
    handler = replace(HANDLER, timeout_seconds=600)
    deaf = QueueSettings(handlers=(handler,))
    settings = Settings(supervisor=patient, queues={"deaf": deaf})
    async with running(spawn, settings) as scene:
        scene.source.settings = replace(settings, queues={"deaf": replace(deaf, concurrency=2)})
        os.kill(os.getpid(), signal.SIGHUP)
        await scene.facts.until(lambda f: "consumer:deaf/1 draining" in f.history)
        with anyio.fail_after(20):
            scene.supervisor.stop("test")
            await scene.facts.until(lambda f: "consumer:deaf/1 stopped" in f.history)
    assert scene.run.code is ExitCode.DRAIN_DEADLINE


async def test_what_overruns_a_stop_counts_although_the_reload_was_to_end_it(spawn: Spawn) -> None:
    patient = SupervisorSettings(grace_seconds=2, escalation_seconds=1)
    deaf = QueueSettings(handlers=(replace(HANDLER, timeout_seconds=600),))
    settings = Settings(supervisor=patient, queues={"deaf": deaf, "kind": QUEUE})
    async with running(spawn, settings) as scene:
        scene.source.settings = replace(settings, queues={"kind": QUEUE})
        os.kill(os.getpid(), signal.SIGHUP)
        await scene.facts.until(lambda f: "consumer:deaf/1 draining" in f.history)
    assert scene.run.code is ExitCode.DRAIN_DEADLINE


async def test_a_stop_during_a_reload_is_told_to_whoever_waits_for_it(
    spawn: Spawn, tmp_path: Path
) -> None:
    """What is read takes as long as its imports do: the daemon may end before that."""
    scene = Scene(spawn, with_queues(), None)
    scene.source.may_answer = anyio.Event()
    control = ControlSocket(str(tmp_path / "run" / "control.sock"))
    answers: list[bytes] = []

    async def order() -> None:
        async with await anyio.connect_unix(tmp_path / "run" / "control.sock") as stream:
            await stream.send(b'{"do":"reload"}\n')
            answers.append(await stream.receive())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.supervisor.run, partial(serve_control, control, scene.supervisor))
        await scene.facts.until(lambda f: "ready" in f.history)
        tasks.start_soon(order)
        await scene.source.being_read.wait()
        tasks.start_soon(order)
        await anyio.wait_all_tasks_blocked()
        scene.supervisor.stop("test")

    told = b'{"ok":false,"error":"not reloaded: outboxd is stopping"}\n'
    assert answers == [told, told]


async def stop(scene: Scene) -> None:
    scene.supervisor.stop("test")


async def test_a_stop_before_everything_is_ready_is_told_to_who_waits_for_a_reload(
    spawn: Spawn,
) -> None:
    scene = Scene(spawn, with_queues(slow_start=QUEUE), None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.run)
        await scene.facts.until(lambda f: "consumer:slow_start/1 started" in f.history)
        tasks.start_soon(stop, scene)
        with anyio.fail_after(2):
            assert await scene.refused() == "not reloaded: outboxd is stopping"
            assert await scene.refused() == "not reloaded: outboxd is stopping"
