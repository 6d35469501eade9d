"""Reloads with scripted children: all or nothing, one at a time, and a stop wins."""

import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from outboxd.core.clock import boottime
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import (
    HandlerSettings,
    QueueSettings,
    RelaySettings,
    Settings,
    SupervisorSettings,
)
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.process import Spawn
from outboxd.supervision.replacements import NotReplaced, UnknownChild
from outboxd.supervision.sd_notify import Notifier
from outboxd.supervision.supervisor import NotReloaded
from tests.supervision.scene import (
    QUICK,
    Configured,
    Facts,
    Run,
    a_configured_supervisor,
    scripted,
)
from tests.supervision.scripted_child import UNLUCKY

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")

HANDLER = HandlerSettings(event="*", handler="a:b", name="b", timeout_seconds=1)
QUEUE = QueueSettings(handlers=(HANDLER,), wait_seconds=0)
SETTINGS = Settings(
    supervisor=QUICK, relay=RelaySettings(), queues={"polite": QUEUE, "kind": QUEUE}
)
POLITE, KIND = "consumer:polite/1", "consumer:kind/1"


def with_queues(**queues: QueueSettings) -> Settings:
    return replace(SETTINGS, queues={**SETTINGS.queues, **queues})


@pytest.fixture
def spawn(monkeypatch: pytest.MonkeyPatch) -> Spawn:
    return scripted(monkeypatch.setenv)


class Scene:
    """A running supervisor, its source and its facts."""

    def __init__(self, spawn: Spawn, settings: Settings, notifier: Notifier | None) -> None:
        self.facts = Facts()
        self.source = Configured(settings)
        self.supervisor = a_configured_supervisor(self.facts, spawn, self.source, notifier)
        self.run = Run(self.supervisor)

    def starts(self) -> list[str]:
        """Which children have been started since all were ready for the first time."""
        history = self.facts.history[self.facts.history.index("ready") :]
        return [fact.removesuffix(" started") for fact in history if fact.endswith(" started")]

    async def refused(self) -> str:
        with pytest.raises(NotReloaded) as refusal:
            await self.supervisor.reload(everything=False)
        return str(refusal.value)


@asynccontextmanager
async def running(
    spawn: Spawn, settings: Settings = SETTINGS, notifier: Notifier | None = None
) -> AsyncIterator[Scene]:
    scene = Scene(spawn, settings, notifier)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.run)
        await scene.facts.until(lambda f: "ready" in f.history)
        yield scene
        scene.supervisor.stop("test")


async def test_only_what_changed_is_restarted_and_the_source_hears_of_it(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        scene.source.settings = new = with_queues(polite=replace(QUEUE, concurrency=2))

        assert await scene.supervisor.reload(everything=False) == f"reloaded: restarted {POLITE}"

        assert scene.starts() == [POLITE]
        assert scene.facts.restarts == [(POLITE, RestartReason.RELOAD)]
        assert scene.source.adopted_ones == [new]
        assert "reloaded ok" in scene.facts.history
    assert scene.run.code is ExitCode.OK


async def test_a_second_reload_of_the_same_changes_nothing(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        scene.source.settings = with_queues(new=QUEUE)
        await scene.supervisor.reload(everything=False)
        started = scene.starts()

        assert await scene.supervisor.reload(everything=False) == (
            "reloaded: no child is concerned"
        )
        assert scene.starts() == started


async def test_limits_of_the_supervisor_itself_need_no_restart(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        limits = replace(QUICK, crashes=1, failed_retry_seconds=60)
        scene.source.settings = replace(SETTINGS, supervisor=limits)
        await scene.supervisor.reload(everything=False)
        assert scene.starts() == []

        current = scene.supervisor.life(POLITE).current
        assert current is not None
        os.kill(current.process.pid, signal.SIGKILL)
        await scene.facts.until(lambda f: f"{POLITE} failed" in f.history)


async def test_queues_come_and_go(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        scene.supervisor.pause("kind")
        scene.source.settings = replace(SETTINGS, queues={"polite": QUEUE, "new": QUEUE})

        told = await scene.supervisor.reload(everything=False)

        new = "consumer:new/1"
        assert told == f"reloaded: started {new}; restarted extender; ended {KIND}"
        assert scene.starts() == ["extender", new], "the extender knows the queue before its pool"
        assert f"{KIND} removed" in scene.facts.history
        assert "kind resumed" in scene.facts.history, "nobody is left to be resumed"
        names = [life.name for life in scene.supervisor.lives]
        assert names == ["extender", "relay", POLITE, new]


async def test_the_extender_goes_after_the_last_pool_and_comes_back(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        scene.source.settings = replace(SETTINGS, queues={})
        await scene.supervisor.reload(everything=False)
        removed = [fact for fact in scene.facts.history if fact.endswith(" removed")]
        assert removed[-1] == "extender removed"
        assert [life.name for life in scene.supervisor.lives] == ["relay"]

        scene.source.settings = SETTINGS
        await scene.supervisor.reload(everything=False)
        assert scene.starts() == ["extender", POLITE, KIND]
    assert scene.run.code is ExitCode.OK


async def test_a_child_that_is_not_ready_brings_all_of_them_back(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        scene.source.settings = with_queues(
            polite=replace(QUEUE, concurrency=2), kind=replace(QUEUE, concurrency=UNLUCKY)
        )

        told = await scene.refused()

        assert "the old configuration is in use again" in told
        assert f"{KIND} did not become ready: bad luck" in told
        assert scene.starts() == [POLITE, KIND, KIND, POLITE]
        assert all(life.ready for life in scene.supervisor.lives)
        assert scene.supervisor.life(POLITE).terms.settings.queues["polite"] == QUEUE
        assert scene.facts.history.count("reloaded child_not_ready") == 1
        assert scene.source.adopted_ones == []
    assert scene.run.code is ExitCode.OK, "a bad configuration ends no daemon"


async def test_a_new_pool_that_is_not_ready_goes_again(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        scene.source.settings = with_queues(new=QUEUE, newer=replace(QUEUE, concurrency=UNLUCKY))

        await scene.refused()

        names = [life.name for life in scene.supervisor.lives]
        assert names == ["extender", "relay", POLITE, KIND]
        assert all(life.ready for life in scene.supervisor.lives)


async def test_a_child_that_crashes_after_a_failed_reload_runs_by_the_old_configuration(
    spawn: Spawn,
) -> None:
    async with running(spawn) as scene:
        scene.source.settings = with_queues(kind=replace(QUEUE, concurrency=UNLUCKY))
        await scene.refused()

        current = scene.supervisor.life(KIND).current
        assert current is not None
        os.kill(current.process.pid, signal.SIGKILL)
        await scene.facts.until(lambda f: f"{KIND} ended -9" in f.history)
        await scene.facts.until(lambda _: scene.supervisor.life(KIND).ready)


async def test_a_reload_mends_a_pool_that_was_given_up(spawn: Spawn) -> None:
    patient = replace(QUICK, failed_retry_seconds=300)
    crashing = QueueSettings(handlers=(HANDLER,))
    before = replace(SETTINGS, supervisor=patient, queues={"crashes": crashing, "kind": QUEUE})
    scene = Scene(spawn, before, None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.run)
        await scene.facts.until(lambda f: "consumer:crashes/1 failed" in f.history)
        scene.source.settings = replace(
            before, queues={"crashes": replace(crashing, concurrency=2), "kind": QUEUE}
        )
        with anyio.fail_after(20):
            await scene.supervisor.reload(everything=False)
        scene.supervisor.stop("test")


async def test_a_reload_does_not_wait_for_a_pool_that_keeps_failing_from_the_start(
    spawn: Spawn,
) -> None:
    """It may be what the reload is to mend; at no moment all children were ready."""
    patient = replace(QUICK, failed_retry_seconds=300)
    settings = replace(
        SETTINGS, supervisor=patient, relay=None, queues={"crashes": QUEUE, "late": QUEUE}
    )
    scene = Scene(spawn, settings, None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.run)
        await scene.facts.until(lambda f: "consumer:crashes/1 failed" in f.history)
        scene.source.settings = replace(settings, queues={"polite": QUEUE, "late": QUEUE})
        with anyio.fail_after(40):
            told = await scene.supervisor.reload(everything=False)
        assert "ended consumer:crashes/1" in told
        assert all(life.ready for life in scene.supervisor.lives)
        scene.supervisor.stop("test")


async def test_an_unusable_configuration_is_told_and_changes_nothing(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        scene.source.problems = ["[queues.x] y: unknown key", "[queues.x] z: unknown key"]

        assert await scene.refused() == (
            "not reloaded, nothing is changed: [queues.x] y: unknown key; [queues.x] z: unknown key"
        )
        assert scene.starts() == []
        assert "reloaded invalid" in scene.facts.history


async def test_a_bug_costs_the_reload_and_not_the_daemon(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        with pytest.MonkeyPatch.context() as bug:
            bug.setattr(scene.source, "children", None)

            assert await scene.refused() == "a bug in outboxd; its log tells more"

        await scene.supervisor.reload(everything=True)
    assert scene.run.code is ExitCode.OK


async def test_what_is_asked_for_during_a_reload_is_one_more_that_reads_the_newest(
    spawn: Spawn,
) -> None:
    async with running(spawn) as scene:
        scene.source.may_answer = anyio.Event()
        told: list[str] = []

        async def ask() -> None:
            told.append(await scene.supervisor.reload(everything=False))

        async with anyio.create_task_group() as askers:
            askers.start_soon(ask)
            await scene.source.being_read.wait()
            for _ in range(5):
                askers.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            os.kill(os.getpid(), signal.SIGHUP)
            scene.source.may_answer.set()
        await scene.facts.until(lambda f: f.history.count("reloaded ok") == 2)

        assert len(told) == 6
        assert scene.source.reads == 2


async def test_a_sighup_before_everything_is_ready_waits_for_that(spawn: Spawn) -> None:
    scene = Scene(spawn, SETTINGS, None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.run)
        await scene.facts.until(lambda f: "relay started" in f.history)
        os.kill(os.getpid(), signal.SIGHUP)
        await scene.facts.until(lambda f: "reloaded ok" in f.history)
        history = scene.facts.history
        assert history.index("ready") < history.index("reloaded ok")
        scene.supervisor.stop("test")


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


async def test_a_process_has_the_time_of_the_handlers_that_it_runs(spawn: Spawn) -> None:
    """The new configuration may give them less, or have none of them."""
    name = "consumer:slow_to_drain/1"
    long = replace(QUEUE, handlers=(replace(HANDLER, timeout_seconds=600),))
    async with running(spawn, with_queues(slow_to_drain=long)) as scene:
        scene.source.settings = with_queues(slow_to_drain=QUEUE)
        os.kill(os.getpid(), signal.SIGHUP)
        await scene.facts.until(lambda f: f"{name} draining" in f.history)

        draining = scene.supervisor.life(name).current
        assert draining is not None
        assert draining.order.timetable.drain_by > boottime() + 500


async def test_a_start_that_hangs_is_not_waited_for_as_long_as_handlers_are(spawn: Spawn) -> None:
    name = "consumer:slow_start/1"
    long = replace(QUEUE, handlers=(replace(HANDLER, timeout_seconds=600),))
    scene = Scene(spawn, with_queues(slow_start=long), None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.run)
        await scene.facts.until(lambda _: scene.supervisor.life(name).current is not None)
        starting = scene.supervisor.life(name).current
        tasks.start_soon(scene.supervisor.life(name).renew, RestartReason.OPERATOR)
        await scene.facts.until(lambda f: f"{name} draining" in f.history)

        assert starting is not None
        late = starting.started_at + QUICK.start_deadline_seconds + 5
        assert starting.order.timetable.kill_at < late
        scene.supervisor.stop("test")
        starting.kill()


async def test_a_restart_that_has_waited_for_a_reload_is_of_what_is_there_then(
    spawn: Spawn,
) -> None:
    async with running(spawn, with_queues(slow_to_drain=QUEUE)) as scene:
        slow = replace(QUEUE, concurrency=2)
        scene.source.settings = replace(
            SETTINGS, queues={"slow_to_drain": slow, "polite": replace(QUEUE, processes=2)}
        )
        os.kill(os.getpid(), signal.SIGHUP)
        await scene.facts.until(lambda f: "consumer:slow_to_drain/1 draining" in f.history)

        with pytest.raises(UnknownChild, match=KIND):
            await scene.supervisor.restart(KIND)


async def test_a_stop_takes_no_orders_to_restart(spawn: Spawn) -> None:
    async with running(spawn, with_queues(slow_to_drain=QUEUE)) as scene:
        scene.supervisor.stop("test")

        with pytest.raises(NotReplaced, match="outboxd is stopping"):
            await scene.supervisor.restart("consumer:slow_to_drain")
    assert scene.facts.restarts == []


async def test_a_restart_by_order_concerns_a_child_or_a_pool(spawn: Spawn) -> None:
    settings = with_queues(polite=replace(QUEUE, processes=2))
    async with running(spawn, settings) as scene:
        assert await scene.supervisor.restart(KIND) == f"{KIND} restarted"
        told = await scene.supervisor.restart("consumer:polite")

        assert told == f"{POLITE}, consumer:polite/2 restarted"
        assert [name for name, _ in scene.facts.restarts] == [KIND, POLITE, "consumer:polite/2"]
        assert {reason for _, reason in scene.facts.restarts} == {RestartReason.OPERATOR}
        with pytest.raises(Exception, match='there is no child "consumer:poli"'):
            await scene.supervisor.restart("consumer:poli")
