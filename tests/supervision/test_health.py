import anyio
import msgspec
import pytest

from outboxd.supervision.health import SupervisorHealth
from outboxd.supervision.process import Spawn
from tests.supervision.scene import QUICK, Facts, Run, a_supervisor, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


async def test_children_are_rows_and_a_stop_ends_the_readiness(spawn: Spawn) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("relay"))
    health = SupervisorHealth(supervisor)
    assert health.ready() == ["relay is stopped"]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: "ready" in f.history)
        (row,) = health.children()
        assert (row.name, row.state, row.restarts) == ("relay", "ready", 0)
        assert health.alive() == health.ready() == []
        supervisor.stop("test")
        assert health.ready() == ["stopping"]


@pytest.mark.parametrize(
    ("queue", "now", "problems"),
    [
        ("heard_long_ago", 1029, []),
        ("heard_long_ago", 1031, ["consumer:heard_long_ago/1 has not received for 31 s"]),
        ("heard_long_ago_but_busy", 1031, []),
    ],
)
async def test_a_pool_that_hears_nothing_is_not_ready_unless_its_slots_are_taken(
    spawn: Spawn, queue: str, now: float, problems: list[str]
) -> None:
    facts = Facts()
    name = f"consumer:{queue}/1"
    supervisor = a_supervisor(facts, spawn, spec(name))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f"{name} heartbeat" in f.history and "ready" in f.history)
        assert SupervisorHealth(supervisor, clock=lambda: now).ready() == problems
        supervisor.stop("test")


async def test_a_pool_that_gave_up_leaves_the_daemon_alive_but_not_ready(spawn: Spawn) -> None:
    facts = Facts()
    patient = msgspec.structs.replace(QUICK, failed_retry_seconds=60)
    supervisor = a_supervisor(facts, spawn, spec("consumer:crashes/1"), settings=patient)
    health = SupervisorHealth(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: "consumer:crashes/1 failed" in f.history)
        assert health.alive() == []
        assert health.ready() == ["consumer:crashes/1 is failed"]
        supervisor.stop("test")
