"""What a dead pool may have died of reaches its successor, whatever happens on the way."""

from collections.abc import Callable

import anyio
import pytest

from outboxd.channels.protocol import Address, Suspect, Welcome
from outboxd.core.exit_codes import ExitCode
from outboxd.supervision.link import Link
from outboxd.supervision.observing import State
from outboxd.supervision.process import Spawn
from outboxd.supervision.supervisor import Supervisor
from tests.supervision.scene import Facts, Run, a_supervisor, scripted, spec

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork:DeprecationWarning")

Welcomes = Callable[[Supervisor], dict[int, Welcome]]


@pytest.fixture
def spawn(monkeypatch: pytest.MonkeyPatch) -> Spawn:
    return scripted(monkeypatch.setenv)


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


def a_suspect(number: int, *, alone: bool = False) -> Suspect:
    return Suspect("work", f"m-{number}", alone, "signal")


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

    assert [welcomes[number].suspects for number in (1, 2, 3, 4)] == [
        (),
        *[(a_suspect(2), a_suspect(3))] * 3,
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

    assert welcomes[2].suspects == (a_suspect(3, alone=True),)


async def test_an_incarnation_that_was_ready_has_them_and_the_next_does_not(
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
