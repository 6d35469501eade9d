"""Batches and transactions of the handler's own in a running pool, on a real PostgreSQL."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from outboxd import Context, Event, Reject
from outboxd.core.settings import BackoffSettings
from outboxd.ports.consumer_observer import Processed
from tests.adapters.bringers import of_session, of_session_async
from tests.adapters.handling_scene import WRITE, Scene, Tx, a_scene, loaded
from tests.consumer.scene import a_pool, event_body, eventually, reason

BATCH: dict[str, Any] = {"batch": 10, "batch_wait_seconds": 0.05}


@pytest.fixture
async def scene(database: str) -> AsyncIterator[Scene]:
    async with a_scene(database) as scene:
        yield scene


def bodies(event_ids: list[UUID], payload: object = None) -> list[str]:
    return [event_body(payload=payload, event_id=event_id) for event_id in event_ids]


async def test_poison_in_a_batch_is_found_and_its_neighbours_take_effect_once(
    scene: Scene,
) -> None:
    event_ids = [uuid4() for _ in range(25)]
    poison = event_ids[7]
    sizes: list[int] = []

    def writes(events: list[Event[Any]], tx: Tx) -> None:
        sizes.append(len(events))
        for event in events:
            tx.execute(WRITE, (event.id, "written"))
            if event.id == poison:
                raise Reject("poison")

    handler = loaded(writes, **BATCH)
    async with a_pool(handler, database=scene.database, concurrency=30) as pool:
        for body in bodies(event_ids):
            pool.queue.send(body)
        await eventually(lambda: pool.queue.size == 0)

    assert sorted(scene.effects) == sorted(set(event_ids) - {poison})
    assert max(sizes) > 1
    (letter,) = pool.queue.letters
    assert reason(letter.attributes)["error"] == "Reject: poison"
    assert pool.observed.count(Processed.OK) == 24


async def test_copies_within_and_beside_a_batch_take_effect_once(scene: Scene) -> None:
    event_ids = [uuid4() for _ in range(5)]

    async def writes(events: list[Event[Any]], tx: Any) -> None:
        for event in events:
            await tx.execute(WRITE, (event.id, "written"))

    handler = loaded(writes, **BATCH)
    async with a_pool(handler, database=scene.database, concurrency=30) as pool:
        for body in bodies(event_ids * 4):
            pool.queue.send(body)
        await eventually(lambda: pool.queue.size == 0, seconds=30)

    assert sorted(scene.effects) == sorted(event_ids)
    assert pool.observed.count(Processed.OK) == 5
    assert pool.observed.count(Processed.DUPLICATE) == 15


@pytest.mark.parametrize("redelivered", [False, True])
async def test_a_batch_that_committed_by_itself_and_failed_is_dead_lettered_not_lost(
    scene: Scene, redelivered: bool
) -> None:
    """Also if the messages had been delivered before: their marks would make them duplicates."""
    event_ids = [uuid4() for _ in range(3)]

    def commits(events: list[Event[Any]], tx: Tx) -> None:
        for event in events:
            tx.execute(WRITE, (event.id, "written"))
        tx.execute("COMMIT")
        raise ValueError("odd")

    handler = loaded(commits, **{**BATCH, "batch_wait_seconds": 0.3})
    async with a_pool(handler, database=scene.database, concurrency=30) as pool:
        for body in bodies(event_ids):
            message_id = pool.queue.send(body)
            if redelivered:
                pool.queue.redeliver(message_id)
        await eventually(lambda: pool.queue.size == 0)

    assert len(pool.queue.letters) == 3
    for letter in pool.queue.letters:
        assert "ended its transaction itself" in reason(letter.attributes)["error"]


async def test_own_transactions_take_effect_once_in_a_pool(scene: Scene) -> None:
    event_ids = [uuid4() for _ in range(10)]

    def writes(event: Event[Any], context: Context) -> None:
        with of_session(scene.dsn) as (session, write):
            if context.claim(session):
                write(event.id)
            if context.attempt == 1 and event.id == event_ids[0]:
                raise ValueError("odd")

    async def writes_async(event: Event[Any], context: Context) -> None:
        async with of_session_async(scene.dsn) as (session, write):
            if await context.claim(session):
                await write(event.id)

    handlers = [loaded(writes, "one", inbox="own"), loaded(writes_async, "two", inbox="own")]
    async with a_pool(
        *handlers,
        database=scene.database,
        concurrency=10,
        backoff=BackoffSettings(first_seconds=0.01, cap_seconds=0.02),
    ) as pool:
        for body in bodies(event_ids * 2):
            pool.queue.send(body)
        await eventually(lambda: pool.queue.size == 0, seconds=30)

    assert sorted(scene.effects) == sorted(event_ids * 2)
    assert scene.marks == 20
    assert pool.queue.letters == []
