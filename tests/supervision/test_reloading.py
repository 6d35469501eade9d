"""Reloads with scripted children: only what changed, all or nothing, one after another."""

import os
import signal

import anyio
import pytest
from msgspec.structs import replace

from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import (
    QueueSettings,
)
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.process import Spawn
from tests.supervision.reload_scene import (
    HANDLER,
    KIND,
    POLITE,
    QUEUE,
    SETTINGS,
    Scene,
    running,
    with_queues,
)
from tests.supervision.scene import (
    QUICK,
)
from tests.supervision.scripted_child import UNLUCKY

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


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
            "reloaded: no child is concerned; `outboxd reload --all` is for code that has changed"
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


async def test_a_child_that_cannot_go_back_at_once_is_told(spawn: Spawn) -> None:
    """Its third process is the first one by the old configuration."""
    async with running(spawn, with_queues(fails_twice=QUEUE)) as scene:
        scene.source.settings = with_queues(fails_twice=replace(QUEUE, concurrency=2))

        told = await scene.refused()

        name = "consumer:fails_twice/1"
        assert f"{name} did not become ready: crash, exit code 1; see its log" in told
        assert told.endswith(f"not ready by it either, and tried again: {name}")
        await scene.facts.until(lambda _: scene.supervisor.life(name).ready)


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
