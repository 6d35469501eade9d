import os
import signal
from collections import Counter

import anyio
import msgspec
import pytest

from outboxd.channels.protocol import MAX_FRAME_BYTES, Address
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import Settings
from outboxd.supervision.metrics import MetricsBook
from outboxd.supervision.observing import RestartReason, State
from outboxd.supervision.process import ChildProcess, Spawn
from outboxd.supervision.sd_notify import Notifier
from outboxd.supervision.supervisor import Supervisor
from tests.supervision.scene import QUICK, Facts, Run, a_supervisor, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


async def test_children_become_ready_and_a_stop_drains_them(spawn: Spawn) -> None:
    facts = Facts()
    supervisor = a_supervisor(
        facts, spawn, spec("extender"), spec("relay"), spec("consumer:polite/1")
    )
    run = Run(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: "ready" in f.history)
        supervisor.stop("test")

    assert run.code is ExitCode.OK
    assert facts.restarts == []
    ends = [fact for fact in facts.history if " ended " in fact]
    assert ends[-1] == "extender ended 0", "the extender ends last"
    assert sorted(ends[:-1]) == ["consumer:polite/1 ended 0", "relay ended 0"]


async def test_sigterm_drains_and_a_second_one_changes_nothing(spawn: Spawn) -> None:
    facts = Facts()
    run = Run(a_supervisor(facts, spawn, spec("consumer:polite/1")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: "ready" in f.history)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)

    assert run.code is ExitCode.OK


async def test_a_child_deaf_to_the_drain_is_killed_in_time_and_the_exit_code_says_so(
    spawn: Spawn,
) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("consumer:deaf/1"), spec("consumer:polite/1"))
    run = Run(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: "ready" in f.history)
        with anyio.fail_after(QUICK.grace_seconds + 1):
            supervisor.stop("test")
            await facts.until(lambda f: f.states["consumer:deaf/1"] is State.STOPPED)

    assert run.code is ExitCode.DRAIN_DEADLINE
    assert "consumer:polite/1 ended 0" in facts.history


async def test_a_second_ctrl_c_ends_everything_now(spawn: Spawn) -> None:
    facts = Facts()
    patient = msgspec.structs.replace(QUICK, grace_seconds=300)
    run = Run(a_supervisor(facts, spawn, spec("consumer:deaf/1"), settings=patient))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: "ready" in f.history)
        os.kill(os.getpid(), signal.SIGINT)
        await facts.until(lambda f: f.states["consumer:deaf/1"] is State.DRAINING)
        os.kill(os.getpid(), signal.SIGINT)
        with anyio.fail_after(10):
            await facts.until(lambda f: f.states["consumer:deaf/1"] is State.STOPPED)

    assert run.code is ExitCode.DRAIN_DEADLINE


async def test_a_killed_child_comes_back(spawn: Spawn) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("relay"))
    run = Run(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: "ready" in f.history)
        current = supervisor.lives[0].current
        assert current is not None
        os.kill(current.process.pid, signal.SIGKILL)
        await facts.until(lambda f: f.history.count("relay ready") == 2)
        supervisor.stop("test")

    assert facts.restarts == [("relay", RestartReason.SIGNAL)]
    assert run.code is ExitCode.OK


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("consumer:silent/1", RestartReason.HEARTBEAT),
        ("consumer:slow_start/1", RestartReason.STARTUP_TIMEOUT),
        ("consumer:garbage/1", RestartReason.PROTOCOL),
        ("consumer:crashes/1", RestartReason.CRASH),
    ],
)
async def test_the_reason_of_a_restart_is_told_apart(
    spawn: Spawn, name: str, reason: RestartReason
) -> None:
    facts = Facts()
    settings = msgspec.structs.replace(QUICK, start_deadline_seconds=1.5)
    supervisor = a_supervisor(facts, spawn, spec(name, 0.5), settings=settings)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: len(f.restarts) > 0)
        supervisor.stop("test")

    assert facts.restarts[0] == (name, reason)


async def test_a_deployment_that_never_becomes_ready_exits_3(spawn: Spawn) -> None:
    facts = Facts()
    run = Run(a_supervisor(facts, spawn, spec("consumer:never_ready/1"), spec("relay")))

    with anyio.fail_after(20):
        await run()

    assert run.code is ExitCode.NEVER_READY
    assert Counter(facts.restarts)["consumer:never_ready/1", RestartReason.CRASH] == 3
    assert "relay ended 0" in facts.history, "its neighbour is drained first"


async def test_a_pool_that_keeps_crashing_is_tried_again_slowly(spawn: Spawn) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("consumer:crashes/1"), spec("relay"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: "consumer:crashes/1 failed" in f.history)
        failed_at = facts.history.index("consumer:crashes/1 failed")
        await facts.until(lambda f: "consumer:crashes/1 started" in f.history[failed_at:])
        assert not supervisor.stopping
        supervisor.stop("test")


async def test_a_child_that_says_why_it_cannot_work_is_not_asked_again(
    spawn: Spawn, caplog: pytest.LogCaptureFixture
) -> None:
    facts = Facts()
    run = Run(a_supervisor(facts, spawn, spec("consumer:refuses/1")))

    with anyio.fail_after(20):
        await run()

    assert run.code is ExitCode.NEVER_READY
    assert facts.history.count("consumer:refuses/1 started") == 1
    given_up = next(record for record in caplog.records if record.message == "giving up")
    assert vars(given_up)["why"] == "no tables"


async def test_a_configuration_too_large_for_a_frame_ends_in_good_order(
    spawn: Spawn, caplog: pytest.LogCaptureFixture
) -> None:
    facts = Facts()
    settings = Settings(supervisor=QUICK, import_path=("x" * MAX_FRAME_BYTES,))
    children = [spec("consumer:polite/1")]
    run = Run(Supervisor(settings, children, facts, MetricsBook(), Notifier({}), spawn))

    with anyio.fail_after(20):
        await run()

    assert run.code is ExitCode.NEVER_READY
    cut_off = next(record for record in caplog.records if record.message == "child is cut off")
    assert "exceeds the frame limit" in vars(cut_off)["why"]


async def test_a_child_that_cannot_be_started_leaves_the_supervisor_alive(spawn: Spawn) -> None:
    tries: list[str] = []

    async def fails(name: str) -> ChildProcess:
        tries.append(name)
        raise FileNotFoundError("no such interpreter")

    facts = Facts()
    run = Run(a_supervisor(facts, fails, spec("relay")))

    with anyio.fail_after(20):
        await run()

    assert run.code is ExitCode.NEVER_READY
    assert len(tries) == 3


async def test_a_dead_pools_leases_are_given_back_once_its_successor_is_ready(
    spawn: Spawn,
) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("extender"), spec("consumer:holds_and_crashes/1"))
    name = "consumer:holds_and_crashes/1"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f"{name} ended -9" in f.history)
        assert supervisor.unsettled_dead() == (Address(name, 1),)
        await facts.until(lambda f: f.states[name] is State.READY)
        # The scripted extender says Settled when it is told that the owner is gone; from its
        # heartbeats on it can be seen that nothing is left.
        await facts.until(lambda _: not supervisor.unsettled_dead())
        supervisor.stop("test")
