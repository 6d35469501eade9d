"""The threads of synchronous handlers: everything is done once, and nobody waits for nothing."""

import threading
import time
from contextvars import ContextVar

import anyio
import pytest

from outboxd.adapters import crew as crew_module
from outboxd.adapters.crew import Crew
from tests.consumer.scene import eventually

pytestmark = pytest.mark.anyio

SETTING: ContextVar[str] = ContextVar("setting")


async def abandon(crew: Crew, go: threading.Event, ended: threading.Event) -> None:
    """Have work begin that ends after `go`, and do not wait for it."""
    began = threading.Event()

    def work() -> None:
        began.set()
        go.wait(10)
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crew.run, work)
        await eventually(began.is_set)
        tasks.cancel_scope.cancel()


async def test_results_and_errors_come_back_to_who_asked() -> None:
    crew = Crew(2, "test")

    def fails() -> None:
        raise ValueError("no")

    assert await crew.run(lambda: 42) == 42
    with pytest.raises(ValueError, match="no"):
        await crew.run(fails)


async def test_work_sees_the_context_of_who_asked_and_leaves_none_of_its_own() -> None:
    crew = Crew(1, "test")

    def look_and_change() -> str:
        seen = SETTING.get()
        SETTING.set("of the thread")
        return seen

    for name in ("a", "b"):
        SETTING.set(name)
        assert await crew.run(look_and_change) == name
        assert SETTING.get() == name


async def test_work_that_waits_for_each_other_runs_side_by_side() -> None:
    """The baton goes on before each piece of work: none is stuck behind one that blocks."""
    crew = Crew(8, "test")
    barrier = threading.Barrier(8, timeout=10)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(crew.run, barrier.wait)


async def test_work_behind_one_that_blocks_does_not_wait_for_it() -> None:
    crew = Crew(2, "test")
    go = threading.Event()
    done: list[int] = []

    async def one(number: int) -> None:
        await crew.run(lambda: None)
        done.append(number)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crew.run, lambda: go.wait(10))
        for number in range(50):
            tasks.start_soon(one, number)
        await eventually(lambda: len(done) == 50)
        go.set()


async def test_no_more_run_at_a_time_than_there_are_threads() -> None:
    crew = Crew(3, "test")
    lock = threading.Lock()
    running = most = 0

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1

    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(crew.run, work)
    assert most == 3


async def test_quick_work_needs_few_threads() -> None:
    """A thread for each call would be woken, and the event loop with it, for each message."""
    crew = Crew(64, "test")
    threads: set[int] = set()

    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(crew.run, lambda: threads.add(threading.get_ident()))
    assert len(threads) < 32


async def test_abandoned_work_keeps_its_place_until_it_ends() -> None:
    crew = Crew(1, "test")
    go, ended = threading.Event(), threading.Event()
    await abandon(crew, go, ended)
    later: list[bool] = []
    async with anyio.create_task_group() as tasks:

        async def after() -> None:
            later.append(await crew.run(ended.is_set))

        tasks.start_soon(after)
        await anyio.wait_all_tasks_blocked()
        assert not later
        go.set()
    assert later == [True]


async def test_work_that_was_cancelled_before_it_began_never_begins() -> None:
    crew = Crew(1, "test")
    go, began = threading.Event(), threading.Event()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crew.run, lambda: go.wait(10))
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0):
            await crew.run(began.set)
        go.set()
    await crew.run(lambda: None)
    assert not began.is_set()


async def test_threads_without_work_end_and_others_come_when_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crew_module, "IDLE_SECONDS", 0.01)
    crew = Crew(4, "test")
    threads: list[threading.Thread] = []
    barrier = threading.Barrier(4, timeout=10)

    def note() -> None:
        threads.append(threading.current_thread())
        barrier.wait()

    for _ in range(2):
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(crew.run, note)
        await eventually(lambda: not any(each.is_alive() for each in threads))
    assert len(set(threads)) == 8


async def test_threads_that_come_and_go_all_the_time_lose_no_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rung at the very moment at which it gives up waiting, a thread comes after all."""
    monkeypatch.setattr(crew_module, "IDLE_SECONDS", 0.0005)
    crew = Crew(4, "test")
    done = 0

    async def some() -> None:
        nonlocal done
        for number in range(300):
            await crew.run(lambda: None)
            done += 1
            if number % 7 == 0:
                await anyio.sleep(0.0005)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(some)
    assert done == 1800


def test_work_that_outlives_its_event_loop_harms_nobody() -> None:
    go, ended = threading.Event(), threading.Event()
    crew = Crew(1, "test")
    anyio.run(abandon, crew, go, ended)
    go.set()
    assert ended.wait(10)
    assert anyio.run(crew.run, lambda: "again") == "again"
