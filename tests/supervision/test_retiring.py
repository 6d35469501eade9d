"""A pool that ends itself, because a handler that nothing can interrupt was over its time."""

import anyio
import msgspec
import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.process import Spawn
from tests.supervision.scene import QUICK, Facts, Run, a_supervisor, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


async def test_it_is_replaced_at_once_as_often_as_it_retires_and_nothing_is_suspected(
    spawn: Spawn,
) -> None:
    facts = Facts()
    # A single crash would be the last one, and a single backoff would outlast the test.
    strict = msgspec.structs.replace(
        QUICK, crashes=1, failed_starts=1, backoff_first_seconds=600, backoff_cap_seconds=600
    )
    name = "consumer:retires/1"
    supervisor = a_supervisor(facts, spawn, spec("extender"), spec(name), settings=strict)
    run = Run(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: f.history.count(f"{name} ready") == 10)
        (life,) = [life for life in supervisor.lives if life.name == name]
        assert life.restarts == 9
        await facts.until(lambda _: not supervisor.unsettled_dead())
        supervisor.stop("test")

    assert facts.restarts == [(name, RestartReason.HANDLER_TIMEOUT)] * 9
    assert not [fact for fact in facts.history if fact == f"{name} backoff"]
    assert run.code is ExitCode.OK


async def test_in_a_stop_it_is_an_end_like_any_other(spawn: Spawn) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("consumer:retires_at_the_drain/1"))
    run = Run(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: "ready" in f.history)
        supervisor.stop("test")

    assert facts.restarts == []
    assert run.code is ExitCode.OK


async def test_its_exit_code_without_a_last_word_is_a_crash(spawn: Spawn) -> None:
    facts = Facts()
    name = "consumer:ends_like_a_timeout/1"
    supervisor = a_supervisor(facts, spawn, spec(name))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: len(f.restarts) > 0)
        supervisor.stop("test")

    assert facts.restarts[0] == (name, RestartReason.CRASH)
