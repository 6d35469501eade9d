import anyio
import pytest

from outboxd.actors import on_known_tables
from outboxd.actors.on_known_tables import OnKnownTables
from outboxd.core.errors import HandlerOverran, OutboxdError, Unavailable
from outboxd.core.retry import Backoff


class Works:
    """An actor that works until it is told to end."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.end = anyio.Event()

    async def run(self) -> None:
        self.started.set()
        await self.end.wait()


class Answers:
    """What the check says, one answer after the other; the last one stays."""

    def __init__(self, *answers: OutboxdError | None) -> None:
        self._answers = list(answers)
        self.asked = 0
        self.said_last = anyio.Event()

    async def __call__(self) -> None:
        self.asked += 1
        if len(self._answers) == 1:
            self.said_last.set()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is not None:
            raise answer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_known_tables, "RETRIES", Backoff(first_seconds=0.001))


async def test_tables_of_another_version_refuse_the_start() -> None:
    actor = Works()

    with pytest.raises(OutboxdError, match="run migrate"):
        await OnKnownTables(actor, Answers(OutboxdError("run migrate"))).run()

    assert not actor.started.is_set()


async def test_a_database_that_is_away_does_not_keep_the_actor_from_starting() -> None:
    actor = Works()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(OnKnownTables(actor, Answers(Unavailable("away"))).run)
        await actor.started.wait()
        actor.end.set()


async def test_a_refusal_that_comes_once_the_database_is_back_ends_the_actor() -> None:
    answers = Answers(Unavailable("away"), Unavailable("away"), OutboxdError("run migrate"))

    with anyio.fail_after(5), pytest.raises(OutboxdError, match="run migrate"):
        await OnKnownTables(Works(), answers).run()


async def test_known_tables_are_asked_for_no_more() -> None:
    actor = Works()
    answers = Answers(Unavailable("away"), Unavailable("away"), None)
    checked = OnKnownTables(actor, answers)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checked.run)
        await actor.started.wait()
        with anyio.fail_after(5):
            await answers.said_last.wait()
        await anyio.wait_all_tasks_blocked()
        # One that slept before it asks again would be blocked as well, so it must not be there.
        assert not [task for task in anyio.get_running_tasks() if "_watch" in (task.name or "")]
        actor.end.set()

    assert answers.asked == 3


class Overruns:
    """Ends as a pool does whose handler hangs."""

    async def run(self) -> None:
        raise HandlerOverran("it hangs")


@pytest.mark.parametrize("answer", [None, Unavailable("away")])
async def test_the_actors_own_end_is_told_as_it_is(answer: OutboxdError | None) -> None:
    """Wrapped in a group it would be taken for a crash."""
    with pytest.raises(HandlerOverran, match="it hangs"):
        await OnKnownTables(Overruns(), Answers(answer)).run()
