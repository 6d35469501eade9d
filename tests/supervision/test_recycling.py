"""Processes that are replaced because they have worked for long enough."""

import os
import signal

import anyio
import pytest
from msgspec.structs import replace

from outboxd.core.children import ChildSpec
from outboxd.core.settings import RecycleSettings
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.process import Spawn
from tests.supervision.scene import Facts, Run, a_supervisor, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


def recycled(name: str, limits: RecycleSettings) -> ChildSpec:
    return replace(spec(name), recycle=limits)


async def test_a_process_that_has_done_its_messages_is_replaced_and_nothing_is_held_against_it(
    spawn: Spawn,
) -> None:
    facts = Facts()
    name = "consumer:hard_working/1"
    supervisor = a_supervisor(facts, spawn, recycled(name, RecycleSettings(max_messages=500)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        # More often than any limit for crashes.
        await facts.until(lambda f: f.history.count(f"{name} ready") > 6, seconds=50)
        supervisor.stop("test")

    assert {reason for _, reason in facts.restarts} == {RestartReason.RECYCLE_MESSAGES}
    assert f"{name} backoff" not in facts.history
    assert f"{name} failed" not in facts.history
    ends = {fact for fact in facts.history if fact.startswith(f"{name} ended")}
    assert ends == {f"{name} ended 0"}


async def test_one_at_a_time(spawn: Spawn) -> None:
    facts = Facts()
    names = [f"consumer:hard_working/{number}" for number in (1, 2, 3)]
    supervisor = a_supervisor(
        facts, spawn, *(recycled(name, RecycleSettings(max_messages=500)) for name in names)
    )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: {name for name, _ in f.restarts} == {*names}, seconds=50)
        supervisor.stop("test")

    ready: set[str] = set()
    everybody = False
    for fact in facts.history[: facts.history.index("stopping")]:
        name, _, what = fact.partition(" ")
        if what == "ready":
            ready.add(name)
        elif what == "draining":
            ready.discard(name)
        everybody = everybody or ready == {*names}
        assert len(ready) >= 2 or not everybody, fact


async def test_a_process_that_dies_while_it_waits_for_its_turn_is_not_replaced_twice(
    spawn: Spawn,
) -> None:
    facts = Facts()
    name, other = "consumer:hard_working/1", "consumer:slow_to_drain/1"
    supervisor = a_supervisor(
        facts, spawn, spec(other), recycled(name, RecycleSettings(max_age_seconds=0.2))
    )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: "ready" in f.history)
        tasks.start_soon(supervisor.restart, other)
        await facts.until(lambda f: f"{other} draining" in f.history)
        current = supervisor.life(name).current
        assert current is not None
        os.kill(current.process.pid, signal.SIGKILL)
        await facts.until(lambda f: f.history.count(f"{name} ready") >= 3)
        supervisor.stop("test")

    reasons = [reason for who, reason in facts.restarts if who == name]
    assert RestartReason.SIGNAL in reasons
    starts = facts.history.count(f"{name} started")
    assert starts == len(reasons) + 1, "each start but the first has its reason"


async def test_a_drain_is_no_excuse_for_a_crash(spawn: Spawn) -> None:
    facts = Facts()
    name = "consumer:crashes_at_the_drain/1"
    supervisor = a_supervisor(facts, spawn, spec(name))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: "ready" in f.history)
        await supervisor.restart(name)
        supervisor.stop("test")

    assert facts.restarts[0] == (name, RestartReason.CRASH)


async def test_one_that_does_not_finish_is_killed_and_that_is_no_crash(spawn: Spawn) -> None:
    facts = Facts()
    name = "consumer:deaf/1"
    supervisor = a_supervisor(facts, spawn, replace(spec(name), drain_seconds=0.5))

    run = Run(supervisor)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: "ready" in f.history)
        await supervisor.restart(name)
        assert facts.restarts == [(name, RestartReason.OPERATOR)]
        assert f"{name} backoff" not in facts.history
        supervisor.stop("test")
