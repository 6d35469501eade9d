"""Processes that are replaced by order, and the time that they get for it."""

import os
import signal

import anyio
import pytest
from msgspec.structs import replace

from outboxd.core.clock import boottime
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.process import Spawn
from outboxd.supervision.replacements import NotReplaced, UnknownChild
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

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


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


@pytest.mark.parametrize("name", ["extender", "consumer:slow_to_drain"])
async def test_a_stop_takes_no_orders_to_restart(spawn: Spawn, name: str) -> None:
    async with running(spawn, with_queues(slow_to_drain=QUEUE)) as scene:
        scene.supervisor.stop("test")

        with pytest.raises(NotReplaced, match="outboxd is stopping"):
            await scene.supervisor.restart(name)
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


async def test_orders_for_what_waits_to_be_restarted_are_one(spawn: Spawn) -> None:
    """Whoever gives them and hangs up has them carried out, so they must not add up."""
    name = "consumer:slow_to_drain/1"
    told: list[str] = []

    async with running(spawn, with_queues(slow_to_drain=QUEUE)) as scene:

        async def order(child: str) -> None:
            told.append(await scene.supervisor.restart(child))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(order, name)
            await scene.facts.until(lambda f: f"{name} draining" in f.history)
            for _ in range(20):
                tasks.start_soon(order, name)
            tasks.start_soon(order, KIND)

        assert sorted(told) == sorted([f"{name} restarted"] * 21 + [f"{KIND} restarted"])
        assert [child for child, _ in scene.facts.restarts] == [name, name, KIND]


async def test_who_gives_up_waiting_takes_no_order_back(spawn: Spawn) -> None:
    name = "consumer:slow_to_drain/1"
    async with running(spawn, with_queues(slow_to_drain=QUEUE)) as scene:
        async with anyio.create_task_group() as hangs_up:
            hangs_up.start_soon(scene.supervisor.restart, name)
            await scene.facts.until(lambda f: f"{name} draining" in f.history)
            hangs_up.cancel_scope.cancel()

        assert await scene.supervisor.restart(name) == f"{name} restarted"
        assert [child for child, _ in scene.facts.restarts] == [name, name]


async def test_a_bug_costs_the_restart_and_not_the_daemon(spawn: Spawn) -> None:
    async with running(spawn) as scene:
        with pytest.MonkeyPatch.context() as bug:
            bug.setattr(scene.supervisor.life(KIND), "renew", None)

            with pytest.raises(NotReplaced, match="a bug in outboxd; its log tells more"):
                await scene.supervisor.restart(KIND)

        assert await scene.supervisor.restart(KIND) == f"{KIND} restarted"


async def test_a_stop_is_the_answer_to_restarts_that_have_not_ended(spawn: Spawn) -> None:
    patient = replace(QUICK, grace_seconds=20, escalation_seconds=1)
    deaf = replace(with_queues(deaf=QUEUE), supervisor=patient)
    answers: list[str] = []
    async with running(spawn, deaf) as scene:

        async def order(child: str) -> None:
            with pytest.raises(NotReplaced) as refusal:
                await scene.supervisor.restart(child)
            answers.append(str(refusal.value))

        process = scene.supervisor.life("consumer:deaf/1").current
        assert process is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(order, "consumer:deaf")
            await scene.facts.until(lambda f: "consumer:deaf/1 draining" in f.history)
            tasks.start_soon(order, KIND)
            await anyio.wait_all_tasks_blocked()
            scene.supervisor.stop("test")
        assert "consumer:deaf/1 stopped" not in scene.facts.history, "nobody has waited for that"
        process.kill()

    assert sorted(answers) == [
        "consumer:deaf is not started again: outboxd is stopping",
        f"{KIND} is not started again: outboxd is stopping",
    ]
