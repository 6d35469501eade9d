"""What a dead pool may have died of reaches its successor, whatever happens on the way."""

from collections.abc import Callable
from uuid import UUID

import anyio
import pytest

from outboxd.channels.protocol import Address, Suspect, Welcome
from outboxd.core.exit_codes import ExitCode
from outboxd.supervision import estates
from outboxd.supervision.link import Link
from outboxd.supervision.observing import State
from outboxd.supervision.process import Spawn
from outboxd.supervision.supervisor import Supervisor
from tests.supervision.scene import Facts, Run, a_supervisor, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")

Welcomes = Callable[[Supervisor], dict[int, Welcome]]


@pytest.fixture
def welcomes_of(monkeypatch: pytest.MonkeyPatch) -> Welcomes:
    """The welcomes that a supervisor's consumers get from now on, by incarnation."""

    def listen_in(supervisor: Supervisor) -> dict[int, Welcome]:
        welcomes: dict[int, Welcome] = {}
        attach = supervisor.attach

        def noting(link: Link, welcome: Welcome) -> None:
            welcomes[welcome.address.incarnation] = welcome
            attach(link, welcome)

        monkeypatch.setattr(supervisor, "attach", noting)
        return welcomes

    return listen_in


def a_suspect(number: int, death: UUID, *, alone: bool = False) -> Suspect:
    return Suspect("work", f"m-{number}", alone, "signal", death)


async def lives_on(facts: Facts, child: str) -> None:
    """Return once the child was heard three times more: what it said before has been acted upon."""
    beats = facts.history.count(f"{child} heartbeat") + 3
    await facts.until(lambda f: f.history.count(f"{child} heartbeat") >= beats)


async def test_suspects_survive_successors_that_die_before_they_are_ready(
    spawn: Spawn, welcomes_of: Welcomes
) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("consumer:dies_of_work/1"))
    welcomes = welcomes_of(supervisor)
    run = Run(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: f.history.count("consumer:dies_of_work/1 started") == 4)
        await facts.until(lambda f: f.states["consumer:dies_of_work/1"] is State.READY)
        assert supervisor.unsettled_dead() == (Address("consumer:dies_of_work/1", 1),)
        supervisor.stop("test")

    death = welcomes[1].identity
    assert [welcomes[number].suspects for number in (1, 2, 3, 4)] == [
        (),
        *[(a_suspect(2, death), a_suspect(3, death))] * 3,
    ]
    assert run.code is ExitCode.OK


async def test_only_what_ran_alone_is_suspected(spawn: Spawn, welcomes_of: Welcomes) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("consumer:dies_of_work_alone/1"))
    welcomes = welcomes_of(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f.history.count("consumer:dies_of_work_alone/1 ready") == 2)
        supervisor.stop("test")

    assert welcomes[2].suspects == (a_suspect(3, welcomes[1].identity, alone=True),)


async def test_an_incarnation_that_has_written_them_down_is_the_last_to_be_told(
    spawn: Spawn, welcomes_of: Welcomes
) -> None:
    facts = Facts()
    name = "consumer:dies_of_work_alone/1"
    supervisor = a_supervisor(facts, spawn, spec(name))
    welcomes = welcomes_of(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f.history.count(f"{name} ready") == 2)
        current = supervisor.lives[0].current
        assert current is not None
        current.kill()
        await facts.until(lambda f: f.history.count(f"{name} ready") == 3)
        supervisor.stop("test")

    assert welcomes[3].suspects == ()


async def test_suspects_survive_a_successor_that_is_ready_but_cannot_write_them_down(
    spawn: Spawn, welcomes_of: Welcomes
) -> None:
    facts = Facts()
    name = "consumer:dies_of_work_in_an_outage/1"
    supervisor = a_supervisor(facts, spawn, spec(name))
    welcomes = welcomes_of(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f.history.count(f"{name} ready") == 2)
        current = supervisor.lives[0].current
        assert current is not None
        current.kill()
        await facts.until(lambda f: f.history.count(f"{name} ready") == 3)
        supervisor.stop("test")

    death = welcomes[1].identity
    assert welcomes[3].suspects == (a_suspect(2, death), a_suspect(3, death))


async def test_in_an_outage_leases_are_given_back_once_suspects_are_written_down(
    spawn: Spawn,
) -> None:
    facts = Facts()
    name = "consumer:dies_of_work_in_an_outage/1"
    supervisor = a_supervisor(facts, spawn, spec("extender"), spec(name))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f.history.count(f"{name} ready") == 2)
        await lives_on(facts, "extender")
        assert supervisor.unsettled_dead() == (Address(name, 1),)
        supervisor.pause("dies_of_work_in_an_outage")  # which ends the outage of this child
        await facts.until(lambda _: not supervisor.unsettled_dead(), seconds=5)
        supervisor.stop("test")


async def test_an_outage_keeps_leases_no_longer_than_a_bound(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estates, "SUCCESSOR_SECONDS", 0.1)
    facts = Facts()
    name = "consumer:dies_of_work_in_an_outage/1"
    supervisor = a_supervisor(facts, spawn, spec("extender"), spec(name))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Run(supervisor))
        await facts.until(lambda f: f.history.count(f"{name} ready") == 2)
        await facts.until(lambda _: not supervisor.unsettled_dead(), seconds=5)
        supervisor.stop("test")


async def test_a_stop_that_kills_a_pool_suspects_nothing(
    spawn: Spawn, caplog: pytest.LogCaptureFixture
) -> None:
    facts = Facts()
    supervisor = a_supervisor(facts, spawn, spec("consumer:works_and_is_deaf/1"))
    run = Run(supervisor)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await facts.until(lambda f: "consumer:works_and_is_deaf/1 heartbeat" in f.history)
        supervisor.stop("test")

    assert run.code is ExitCode.DRAIN_DEADLINE
    assert not [record for record in caplog.records if "suspects" in record.message]
