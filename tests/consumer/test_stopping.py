"""How a pool stops: nothing is lost, nothing is hoarded, and it is gone before the deadline."""

import threading
import time
from typing import Any

import anyio

from outboxd import Event
from outboxd.channels.protocol import Drain, Forget
from outboxd.core.clock import boottime
from outboxd.core.errors import Unavailable
from tests.consumer.fake_queue import FakeQueue
from tests.consumer.scene import QUICK, a_pool, event_body, eventually, loaded


async def succeeds(event: Event[Any]) -> None: ...


async def test_a_receive_in_flight_at_a_drain_is_joined_and_what_it_brings_is_released() -> None:
    queue = FakeQueue()
    queue.hold_receives = anyio.Event()
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        await queue.receiving.wait()
        await pool.drain()
        await eventually(lambda: pool.consumer._pool.stopping.is_set())
        for _ in range(3):
            queue.send(event_body())
        queue.hold_receives.set()
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert queue.visible == 3
    assert sorted(queue.history) == ["hid m1 for 0 s", "hid m2 for 0 s", "hid m3 for 0 s"]
    assert pool.observed.processed_by == []


async def test_a_drain_ends_the_work_in_hand_and_takes_no_more() -> None:
    let_go = anyio.Event()

    async def waits(event: Event[Any]) -> None:
        await let_go.wait()

    async with a_pool(loaded(waits), concurrency=2) as pool:
        for _ in range(5):
            pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 2)
        await pool.drain()
        await eventually(lambda: pool.consumer._pool.stopping.is_set())
        assert not pool.finished.is_set()
        let_go.set()
        with anyio.fail_after(5):
            await pool.finished.wait()
        await eventually(lambda: not pool.extender.tokens_held())
    assert pool.queue.size == pool.queue.visible == 3


async def test_what_was_received_and_not_started_is_released_at_a_drain() -> None:
    async with a_pool(loaded(succeeds), concurrency=10) as pool:
        for _ in range(10):
            pool.queue.send(event_body())
        # Between the receive and the first handler: the extender is just being told.
        hold = pool.consumer._leases.hold

        async def and_then_a_drain(items: object) -> None:
            await hold(items)  # type: ignore[arg-type]
            pool.consumer._drain(boottime() + 5)

        pool.consumer._leases.hold = and_then_a_drain  # type: ignore[method-assign]
        with anyio.fail_after(5):
            await pool.finished.wait()
        await eventually(lambda: not pool.extender.tokens_held())
    assert pool.queue.size == pool.queue.visible == 10
    assert pool.observed.processed_by == []


async def test_async_handlers_that_do_not_end_in_time_are_cancelled_and_released() -> None:
    async def sleeps(event: Event[Any]) -> None:
        await anyio.sleep(60)

    async with a_pool(loaded(sleeps)) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        deadline = boottime() + 1
        await pool.counterpart.tell(Drain(deadline))
        with anyio.fail_after(5):
            await pool.finished.wait()
        assert boottime() < deadline
    assert pool.overran
    assert pool.queue.visible == 1
    assert "hid m1 for 0 s" in pool.queue.history
    assert pool.observed.retries == []


async def test_a_thread_that_does_not_end_in_time_keeps_its_message_hidden() -> None:
    """Its transaction ends with the process; only then may the extender give the message back."""
    let_go = threading.Event()

    def sleeps(event: Event[Any]) -> None:
        let_go.wait(30)

    async with a_pool(loaded(sleeps)) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        deadline = boottime() + 1
        await pool.counterpart.tell(Drain(deadline))
        with anyio.fail_after(5):
            await pool.finished.wait()
        assert boottime() < deadline
        let_go.set()
        assert pool.overran
        assert pool.queue.visible == 0
        assert len(pool.extender.tokens_held()) == 1


async def test_an_orphan_settles_without_asking_and_is_gone_in_time() -> None:
    let_go = anyio.Event()

    async def fails_later(event: Event[Any]) -> None:
        await let_go.wait()
        raise ValueError

    async with a_pool(loaded(fails_later), visibility_seconds=2, max_attempts=9) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        pool.counterpart.close()
        began = time.monotonic()
        await eventually(lambda: pool.consumer._pool.stopping.is_set())
        let_go.set()
        with anyio.fail_after(5):
            await pool.finished.wait()
        assert time.monotonic() - began < 1
    assert "hid m1 for 2 s" in pool.queue.history
    assert not any(isinstance(m, Forget) for m in pool.extender.heard)


async def test_a_drain_flushes_deletes_that_fail_at_first() -> None:
    queue = FakeQueue()
    queue.fail("delete", Unavailable("no"), Unavailable("no"), Unavailable("no"))
    let_go = anyio.Event()

    async def waits(event: Event[Any]) -> None:
        await let_go.wait()

    async with a_pool(loaded(waits), queue=queue) as pool:
        queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        await pool.drain()
        let_go.set()
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert queue.size == 0


async def test_a_drain_that_sqs_does_not_answer_ends_before_its_deadline() -> None:
    queue = FakeQueue()
    queue.fail("delete", *[Unavailable("no")] * 10_000)
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        queue.send(event_body())
        await eventually(lambda: len(pool.observed.deletes_failed) > 1)
        deadline = boottime() + 1
        await pool.counterpart.tell(Drain(deadline))
        with anyio.fail_after(5):
            await pool.finished.wait()
        assert boottime() < deadline
    assert queue.holds("m1")


async def test_a_receive_that_never_returns_does_not_outlast_the_deadline() -> None:
    queue = FakeQueue()
    queue.hold_receives = anyio.Event()
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        await queue.receiving.wait()
        deadline = boottime() + 1
        await pool.counterpart.tell(Drain(deadline))
        with anyio.fail_after(5):
            await pool.finished.wait()
        assert boottime() < deadline


async def test_a_second_drain_can_only_shorten_the_first() -> None:
    async def sleeps(event: Event[Any]) -> None:
        await anyio.sleep(60)

    async with a_pool(loaded(sleeps)) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        await pool.drain(30)
        await pool.drain(0.5)
        await pool.drain(30)
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert pool.queue.visible == 1


async def test_a_paused_pool_drains_at_once() -> None:
    async with a_pool(loaded(succeeds), extender_up=False) as pool:
        with anyio.fail_after(5):
            await pool.extender.ready.wait()
        began = time.monotonic()
        await pool.drained()
        assert time.monotonic() - began < 1
    assert QUICK.settle_seconds < 1
