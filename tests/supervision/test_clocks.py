"""Deadlines, and the invariants that stand behind them."""

import anyio
import pytest

from outboxd.core.clock import boottime
from outboxd.core.lives import RestartReason
from outboxd.supervision import clocks
from outboxd.supervision.clocks import Deadlines
from outboxd.supervision.process import Spawn
from tests.supervision.scene import Facts, Run, a_supervisor, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")


async def test_when_the_machine_was_suspended_every_deadline_begins_anew(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The clock of deadlines jumps, and the children have had no time to say anything."""
    facts = Facts()
    name = "consumer:silent/1"
    supervisor = a_supervisor(facts, spawn, spec(name, 5))
    jump = 0.0
    monkeypatch.setattr(clocks, "boottime", lambda: boottime() + jump)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f"{name} ready" in f.history)
        await anyio.sleep(0.5)
        jump = 3600.0
        began = boottime()
        await facts.until(lambda f: len(f.restarts) > 0)
        took = boottime() - began
        supervisor.stop("test")

    assert facts.restarts[0] == (name, RestartReason.HEARTBEAT)
    assert took > 5, "after the rest of the first deadline a whole one"
    assert "the supervisor stood still" in caplog.text


@pytest.mark.parametrize(("late", "stalled"), [(0.1, False), (4.9, False), (5.1, True)])
def test_half_a_deadline_overslept_is_a_stall(late: float, stalled: bool) -> None:
    class Ready:
        ready_at = 1.0

    deadlines = Deadlines(start_seconds=60, heartbeat_seconds=10)

    assert deadlines.stalled(Ready(), late) is stalled  # type: ignore[arg-type]


async def test_a_child_that_is_there_long_after_its_deadline_is_an_invariant_broken(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = Facts()
    name = "consumer:silent/1"
    supervisor = a_supervisor(facts, spawn, spec(name, 0.5))

    async def asleep(*_: object) -> None: ...

    monkeypatch.setattr("outboxd.supervision.attendance.watch_clocks", asleep)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: "ready" in f.history)
        assert supervisor.broken_invariants() == []
        monkeypatch.setattr("outboxd.supervision.supervisor.boottime", lambda: boottime() + 20)
        assert supervisor.broken_invariants() == [f"{name} is long overdue, and still there"]
        monkeypatch.setattr("outboxd.supervision.supervisor.boottime", boottime)
        supervisor.stop("test")
        assert supervisor.broken_invariants() == []
        monkeypatch.setattr("outboxd.supervision.supervisor.boottime", lambda: boottime() + 20)
        assert supervisor.broken_invariants() == ["the stop is overdue"]
        monkeypatch.setattr("outboxd.supervision.supervisor.boottime", boottime)
