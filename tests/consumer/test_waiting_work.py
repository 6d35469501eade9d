"""Every piece of work goes to one worker, and none is left lying while a worker waits."""

import anyio
import anyio.lowlevel
import pytest

from outboxd.actors.consumer.waiting_work import WaitingWork

pytestmark = pytest.mark.anyio


async def take_all(waiting: WaitingWork[int], taken: list[int]) -> None:
    while (piece := await waiting.next()) is not None:
        taken.append(piece)
        await anyio.lowlevel.checkpoint()


async def test_every_piece_is_taken_once_and_in_order_and_the_workers_end() -> None:
    waiting = WaitingWork[int]()
    taken: list[int] = []
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(take_all, waiting, taken)
        for number in range(50):
            waiting.put(number)
            if number % 7 == 0:
                await anyio.wait_all_tasks_blocked()
        waiting.close()
    assert taken == [*range(50)]


async def test_what_waits_at_the_close_is_still_taken() -> None:
    waiting = WaitingWork[int]()
    taken: list[int] = []
    waiting.put(1)
    waiting.put(2)
    waiting.close()
    await take_all(waiting, taken)
    assert taken == [1, 2]
    assert waiting.closed


async def test_a_worker_that_waits_no_more_is_not_given_anything() -> None:
    waiting = WaitingWork[int]()
    taken: list[int] = []
    with anyio.move_on_after(0.01):
        await waiting.next()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_all, waiting, taken)
        await anyio.wait_all_tasks_blocked()
        waiting.put(1)
        await anyio.wait_all_tasks_blocked()
        assert taken == [1]
        waiting.close()
