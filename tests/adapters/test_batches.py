"""Batches on a real PostgreSQL: all of a batch takes effect once, or nothing of it does."""

import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import anyio
import msgspec
import pytest
from anyio import to_thread

from outboxd import BatchContext, Done, Event, NewEvent
from outboxd.adapters.handlers import Runner
from outboxd.core.judging import Busy
from outboxd.ports.handling import BatchDone, BatchEnding, BatchFailed
from tests.adapters.handling_scene import (
    WRITE,
    AsyncTx,
    Scene,
    Tx,
    a_call,
    a_scene,
    loaded,
)

Events = list[Event[Any]]

NEW = NewEvent(type="order.paid", aggregate_type="order", aggregate_id="17", payload={"a": 1})


class Paid(msgspec.Struct):
    total: int


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    async with a_scene(database) as scene:
        yield scene


def ids(count: int) -> list[UUID]:
    return [uuid4() for _ in range(count)]


def writes(events: Events, tx: Tx) -> None:
    with tx.cursor() as cursor:
        cursor.executemany(WRITE, [(event.id, "written") for event in events])


async def writes_async(events: Sequence[Event[Any]], tx: AsyncTx) -> None:
    async with tx.cursor() as cursor:
        await cursor.executemany(WRITE, [(event.id, "written") for event in events])


BOTH_WRITE = pytest.mark.parametrize("handler", [writes, writes_async])


@BOTH_WRITE
async def test_a_batch_and_its_marks_are_committed_together(scene: Scene, handler: Any) -> None:
    event_ids = ids(5)
    assert await scene.run_batch(handler, event_ids) == BatchDone()
    assert scene.effects == event_ids, "in the order given"
    assert scene.marks == 5


@BOTH_WRITE
async def test_only_what_is_new_is_handed_over(scene: Scene, handler: Any) -> None:
    first, second, third = ids(3)
    assert await scene.run_batch(handler, [second]) == BatchDone()

    ending = await scene.run_batch(handler, [first, second, third, first])

    assert ending == BatchDone(duplicates=frozenset({1, 3}))
    assert scene.effects == [second, first, third]


@BOTH_WRITE
async def test_a_handler_is_not_called_when_nothing_is_new(scene: Scene, handler: Any) -> None:
    event_ids = ids(2)
    await scene.run_batch(handler, event_ids)

    assert await scene.run_batch(handler, event_ids) == BatchDone(frozenset({0, 1}))

    assert scene.effects == event_ids


async def test_a_payload_that_does_not_fit_is_left_out_and_its_neighbours_are_done(
    scene: Scene,
) -> None:
    seen: list[int] = []

    def adds(events: list[Event[Paid]]) -> None:
        seen.extend(event.payload.total for event in events)

    runner = scene.runner(adds, batch=10)
    payloads = [b'{"total": 1}', b'{"total": "x"}', b'{"total": 3}']

    ending = await runner.run_batch("h", [a_call(payload=payload) for payload in payloads])

    assert ending == BatchDone(left_out=frozenset({1}))
    assert (seen, scene.marks) == ([1, 3], 2)


@pytest.mark.parametrize("inbox", ["transaction", "off"])
async def test_a_batch_of_nothing_but_unfit_payloads_calls_nobody(scene: Scene, inbox: str) -> None:
    def fails(events: list[Event[Paid]]) -> None:
        raise AssertionError

    runner = scene.runner(fails, batch=10, inbox=inbox)
    ending = await runner.run_batch("h", [a_call(), a_call()])
    assert ending == BatchDone(left_out=frozenset({0, 1}))


async def test_batches_that_share_events_take_effect_once_and_never_deadlock(scene: Scene) -> None:
    event_ids = ids(40)
    endings: list[BatchEnding] = []

    async def batch(number: int) -> None:
        handler = (writes, writes_async)[number % 2]
        given = event_ids[number:] + event_ids[:number]
        endings.append(await scene.run_batch(handler, given[::-1] if number % 3 else given))

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(batch, number)

    assert all(isinstance(ending, BatchDone) for ending in endings), endings
    assert sorted(scene.effects) == sorted(event_ids)


async def test_a_batch_whose_event_is_in_other_hands_gives_way(scene: Scene) -> None:
    shared, *others = ids(3)
    started, let_go = threading.Event(), threading.Event()

    def slow(events: Events, tx: Tx) -> None:
        writes(events, tx)
        started.set()
        let_go.wait(20)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.run_batch, slow, [shared])
        await to_thread.run_sync(started.wait)
        assert await scene.run_batch(writes, [*others, shared]) == Busy()
        assert await scene.run_batch(writes_async, [shared, *others]) == Busy()
        let_go.set()
    assert scene.effects == [shared]


async def test_without_an_inbox_every_event_is_new() -> None:
    seen: list[UUID] = []

    def notes(events: Events) -> Done:
        seen.extend(event.id for event in events)
        return Done()

    async def fails(events: Events) -> None:
        raise ValueError("odd")

    event_id = uuid4()
    calls = [a_call(event_id), a_call(event_id)]
    runner = Runner([loaded(notes, inbox="off", batch=2)], concurrency=1)
    assert await runner.run_batch("h", calls) == BatchDone()
    assert seen == [event_id] * 2
    failing = Runner([loaded(fails, inbox="off", batch=2)], concurrency=1)
    assert await failing.run_batch("h", calls) == BatchFailed("ValueError: odd")


async def test_a_batch_knows_its_handler_its_queue_and_its_time(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[BatchContext] = []

    def publishes(events: Events, context: BatchContext) -> None:
        seen.append(context)
        context.publish(NEW)
        context.logger.warning("look", extra={"count": len(events)})

    assert await scene.run_batch(publishes, ids(2)) == BatchDone()

    (context,) = seen
    assert (context.handler, context.queue) == ("h", "orders")
    assert 0 < context.seconds_left() <= 30
    assert not hasattr(context, "event_id")
    (line,) = [record for record in caplog.records if record.message == "look"]
    assert vars(line)["handler"] == "h"
    assert vars(line)["count"] == 2
    assert scene.rows("SELECT event_type FROM outboxd.outbox_events") == [("order.paid",)]


async def test_a_class_with_options_can_take_batches(scene: Scene) -> None:
    class Counter:
        def __init__(self, start: int) -> None:
            self.count = start

        async def __call__(self, events: list[Event[Any]], context: BatchContext) -> None:
            self.count += len(events)

    counter = Counter(start=10)
    assert await scene.run_batch(counter, ids(3)) == BatchDone()
    assert counter.count == 13
