"""Messages that may have crashed a process run alone, and in the end no more."""

from typing import Any
from uuid import UUID

import anyio

from outboxd import Event
from outboxd.channels.protocol import Alone, Hold, Suspect, SuspectsRecorded
from outboxd.ports.suspects import Suspicion
from tests.consumer.fake_queue import FakeQueue
from tests.consumer.scene import (
    FakeInbox,
    FakeSuspects,
    a_pool,
    event_body,
    eventually,
    loaded,
    reason,
)


def redelivered(queue: FakeQueue, *message_ids: str) -> None:
    """As if a pool had received these before, and died."""
    for message_id in message_ids:
        queue.redeliver(message_id)


async def succeeds(event: Event[Any]) -> None: ...


async def test_what_the_predecessor_left_is_written_down_before_the_first_poll() -> None:
    suspects = FakeSuspects()
    suspect = Suspect("orders", "m1", False, "signal", UUID(int=7))
    async with a_pool(loaded(succeeds), suspects=suspects, inherited=[suspect]) as pool:
        await pool.extender.ready.wait()
        assert suspects.recorded == [suspect]


async def test_in_an_outage_nothing_is_received_before_suspects_are_written_down() -> None:
    suspects = FakeSuspects()
    suspects.away = True
    suspect = Suspect("orders", "m1", False, "signal", UUID(int=7))
    async with a_pool(loaded(succeeds), suspects=suspects, inherited=[suspect]) as pool:
        pool.queue.send(event_body())
        await pool.extender.ready.wait()  # it waits for somebody else
        assert pool.queue.receives == 0
        assert SuspectsRecorded() not in pool.extender.heard
        suspects.away = False
        await eventually(lambda: pool.queue.size == 0)
    assert suspects.recorded == [suspect]
    told = [m for m in pool.extender.heard if isinstance(m, Hold | SuspectsRecorded)]
    assert told[0] == SuspectsRecorded(), "what is held is told after it"
    assert told.count(SuspectsRecorded()) == 1


async def test_the_supervisor_hears_of_the_record_before_it_hears_that_the_pool_is_ready() -> None:
    suspect = Suspect("orders", "m1", False, "signal", UUID(int=7))
    async with a_pool(loaded(succeeds), inherited=[suspect]) as pool:
        await pool.extender.ready.wait()
        assert pool.extender.heard[0] == SuspectsRecorded()


async def test_a_pool_that_inherits_nothing_has_nothing_to_tell() -> None:
    async with a_pool(loaded(succeeds)) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)
    assert SuspectsRecorded() not in pool.extender.heard


async def test_a_suspect_runs_with_nothing_beside_it_and_is_cleared() -> None:
    beside: list[tuple[object, int]] = []
    running = 0

    async def handler(event: Event[Any]) -> None:
        nonlocal running
        running += 1
        await anyio.sleep(0.02)
        beside.append((event.payload, running))
        running -= 1

    queue = FakeQueue()
    suspects = FakeSuspects()
    for number in range(6):
        message_id = queue.send(event_body(payload=number))
        if number in (1, 4):
            redelivered(queue, message_id)
            suspects.known[message_id] = Suspicion(0, "signal")
    async with a_pool(loaded(handler), queue=queue, suspects=suspects, concurrency=6) as pool:
        await eventually(lambda: queue.size == 0)
    assert [count for number, count in beside if number in (1, 4)] == [1, 1]
    assert [number for number, _ in beside][-2:] == [1, 4], "the others did not come first"
    assert suspects.known == {}
    alone = [message for message in pool.extender.heard if isinstance(message, Alone)]
    assert len(alone) == 2


async def test_what_runs_alone_takes_all_slots() -> None:
    """So that a pool which receives nothing meanwhile is not taken for a deaf one."""
    seen: list[int] = []

    async def handler(event: Event[Any]) -> None:
        seen.append(pool.progress.in_flight)

    suspects = FakeSuspects()
    queue = FakeQueue()
    queue.redeliver(queue.send(event_body()))
    suspects.known["m1"] = Suspicion(0, "signal")
    async with a_pool(loaded(handler), queue=queue, suspects=suspects, concurrency=7) as pool:
        await eventually(lambda: queue.size == 0)
        await eventually(lambda: pool.progress.in_flight == 0)
    assert seen == [7]


async def test_alone_is_said_before_the_handler_starts() -> None:
    async def handler(event: Event[Any]) -> None:
        pool.queue.history.append("ran")

    suspects = FakeSuspects()
    suspects.known["m1"] = Suspicion(1, "signal")
    queue = FakeQueue()
    redelivered(queue, queue.send(event_body()))
    async with a_pool(loaded(handler), queue=queue, suspects=suspects) as pool:
        await eventually(lambda: queue.size == 0)
    history = [h for h in pool.queue.history if h in ("Hold", "Alone", "ran")]
    assert history == ["Hold", "Alone", "ran"]


async def test_a_failed_run_alone_clears_too_since_the_process_is_still_there() -> None:
    async def handler(event: Event[Any]) -> None:
        raise RuntimeError("an ordinary failure")

    suspects = FakeSuspects()
    suspects.known["m1"] = Suspicion(1, "signal")
    queue = FakeQueue()
    redelivered(queue, queue.send(event_body()))
    async with a_pool(loaded(handler), queue=queue, suspects=suspects, inbox=FakeInbox()) as pool:
        await pool.sees("hid m1 for 2 s")
    assert suspects.known == {}


async def test_after_two_crashes_alone_it_is_buried_without_another_call() -> None:
    async def handler(event: Event[Any]) -> None:
        raise AssertionError("it was called")

    suspects = FakeSuspects()
    suspects.known["m1"] = Suspicion(2, "signal")
    queue = FakeQueue()
    redelivered(queue, queue.send(event_body()))
    async with a_pool(
        loaded(handler, name="pay"), queue=queue, suspects=suspects, inbox=FakeInbox()
    ) as pool:
        queue.send(event_body("order.other"))
        await eventually(lambda: queue.letters)
        await pool.sees("deleted m1")
    told = reason(queue.letters[0].attributes)
    assert told["reason"] == "crash"
    assert "died 2 times" in told["error"]
    assert "signal" in told["error"]
    assert [h["name"] for h in told["handlers"]] == ["pay"]
    assert pool.observed.dead == [("pay", "crash")]


async def test_the_first_delivery_is_never_asked_about() -> None:
    suspects = FakeSuspects()
    suspects.away = True
    async with a_pool(loaded(succeeds), suspects=suspects) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)


async def test_a_redelivery_that_cannot_be_asked_about_is_put_back() -> None:
    suspects = FakeSuspects()
    suspects.away = True
    queue = FakeQueue()
    redelivered(queue, queue.send(event_body()))
    async with a_pool(loaded(succeeds), queue=queue, suspects=suspects) as pool:
        await pool.sees("hid m1 for 5 s")
        suspects.away = False
        queue.hurry()
        await eventually(lambda: queue.size == 0)
    assert pool.observed.retries == [("succeeds", "database")]


async def test_a_stop_releases_suspects_that_wait_for_their_neighbours() -> None:
    started = anyio.Event()

    async def slow(event: Event[Any]) -> None:
        started.set()
        await anyio.sleep(0.2)

    suspects = FakeSuspects()
    queue = FakeQueue()
    queue.send(event_body())
    suspicious = queue.send(event_body())
    redelivered(queue, suspicious)
    suspects.known[suspicious] = Suspicion(0, "signal")
    async with a_pool(loaded(slow), queue=queue, suspects=suspects) as pool:
        await started.wait()
        await pool.drained()
    assert queue.visible == queue.size == 1
    assert suspects.known == {suspicious: Suspicion(0, "signal")}


async def test_a_group_with_a_suspect_runs_alone_and_in_order() -> None:
    ran: list[object] = []
    running = 0

    async def handler(event: Event[Any]) -> None:
        nonlocal running
        running += 1
        await anyio.sleep(0.01)
        assert running == 1 or event.payload not in ("g0", "g1", "g2")
        ran.append(event.payload)
        running -= 1

    suspects = FakeSuspects()
    queue = FakeQueue(name="orders.fifo")
    for number in range(3):
        message_id = queue.send(event_body(payload=f"g{number}"), group="g")
        redelivered(queue, message_id)
        if number == 1:
            suspects.known[message_id] = Suspicion(0, "signal")
        queue.send(event_body(payload=f"o{number}"), group=f"o{number}")
    async with a_pool(
        loaded(handler),
        queue=queue,
        suspects=suspects,
        concurrency=10,
        queue_name="orders.fifo",
    ) as pool:
        await eventually(lambda: queue.size == 0)
        assert pool.observed.retries == []
    assert [r for r in ran if str(r).startswith("g")] == ["g0", "g1", "g2"]
    assert ran[-3:] == ["g0", "g1", "g2"]
    assert suspects.known == {}
