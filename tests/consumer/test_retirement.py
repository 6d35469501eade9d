"""Handlers over their time that cannot be interrupted end their process, and nobody else's work."""

import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from outboxd import Event
from outboxd.core.settings import BackoffSettings
from outboxd.ports.consumer_observer import Processed
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

FIXED = BackoffSettings(first_seconds=7, jitter="none")


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends the threads of a test, whatever became of it."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_hung_thread_ends_its_pool_and_its_neighbours_finish(
    release: threading.Event,
) -> None:
    finished: list[object] = []

    def handler(event: Event[Any]) -> None:
        if event.payload == "hangs":
            release.wait(30)

    async def neighbour(event: Event[Any]) -> None:
        await anyio.sleep(0.3)
        finished.append(event.payload)

    inbox = FakeInbox()
    async with a_pool(
        loaded(handler, event="order.created", timeout_seconds=0.1),
        loaded(neighbour, event="order.other"),
        inbox=inbox,
        backoff=FIXED,
    ) as pool:
        pool.queue.send(event_body(payload="hangs"))
        for number in range(2):
            pool.queue.send(event_body("order.other", payload=number))
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert "handler" in pool.hung
    assert sorted(map(str, finished)) == ["0", "1"]
    assert list(inbox.attempts.values()) == [1]
    assert "hid m1 for 7 s" in pool.queue.history
    assert pool.queue.size == 1
    assert pool.observed.retries == [("handler", "timeout")]
    await eventually(lambda: not pool.extender.tokens_held())


async def test_the_last_attempt_is_given_up_and_buried_by_the_next_delivery(
    release: threading.Event,
) -> None:
    def handler(event: Event[Any]) -> None:
        release.wait(30)

    inbox = FakeInbox()
    hangs = loaded(handler, timeout_seconds=0.1)
    async with a_pool(hangs, inbox=inbox, max_attempts=1) as pool:
        pool.queue.send(event_body())
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert pool.queue.letters == []
    assert "hid m1 for 2 s" in pool.queue.history, "not before this process has ended"
    pool.queue.hurry()
    async with a_pool(hangs, queue=pool.queue, inbox=inbox, max_attempts=1) as successor:
        await eventually(lambda: successor.queue.size == 0)
    told = reason(successor.queue.letters[0].attributes)
    assert told["reason"] == "timeout"
    assert told["error"] == "timed out after 0.1 s"


async def test_without_a_memory_of_failures_the_letter_is_sent_at_once(
    release: threading.Event,
) -> None:
    def handler(event: Event[Any]) -> None:
        release.wait(30)

    async with a_pool(loaded(handler, timeout_seconds=0.1), max_attempts=1) as pool:
        pool.queue.send(event_body())
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert pool.queue.size == 0
    assert reason(pool.queue.letters[0].attributes)["reason"] == "timeout"
    assert pool.observed.dead == [("handler", "timeout")]


async def test_without_a_memory_no_letter_ends_handlers_that_were_never_called(
    release: threading.Event,
) -> None:
    called: list[str] = []

    def first(event: Event[Any]) -> None:
        release.wait(30)

    async def second(event: Event[Any]) -> None:
        called.append("second")

    async with a_pool(
        loaded(first, timeout_seconds=0.1), loaded(second), max_attempts=1, backoff=FIXED
    ) as pool:
        pool.queue.send(event_body())
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert pool.queue.letters == []
    assert pool.queue.size == 1


async def test_a_retiring_pool_starts_nothing_more(release: threading.Event) -> None:
    """It waits for a neighbour, with slots free and a message to be had."""
    ran: list[object] = []
    neighbour_may_end = anyio.Event()

    def handler(event: Event[Any]) -> None:
        ran.append(event.payload)
        if event.payload == "hangs":
            release.wait(30)

    async def neighbour(event: Event[Any]) -> None:
        await neighbour_may_end.wait()

    async with a_pool(
        loaded(handler, event="order.created", timeout_seconds=0.1),
        loaded(neighbour, event="order.other"),
        inbox=FakeInbox(),
    ) as pool:
        pool.queue.send(event_body("order.other"))
        pool.queue.send(event_body(payload="hangs"))
        await eventually(pool.consumer._pool.stopping.is_set)
        await eventually(lambda: not pool.consumer._receiver.asking)
        receives = pool.queue.receives
        pool.queue.send(event_body(payload="late"))
        neighbour_may_end.set()
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert ran == ["hangs"]
    assert pool.queue.receives == receives
    assert pool.hung


async def test_a_receive_in_flight_is_joined_and_what_it_brings_is_released(
    release: threading.Event,
) -> None:
    def handler(event: Event[Any]) -> None:
        release.wait(30)

    async with a_pool(
        loaded(handler, timeout_seconds=0.1), inbox=FakeInbox(), concurrency=2, wait_seconds=20
    ) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        await eventually(lambda: pool.queue.receives == 2)
        await eventually(pool.consumer._pool.stopping.is_set)
        late = pool.queue.send(event_body())
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert f"hid {late} for 0 s" in pool.queue.history


async def test_suspects_that_wait_behind_a_hung_neighbour_are_released(
    release: threading.Event,
) -> None:
    def handler(event: Event[Any]) -> None:
        if event.payload == "hangs":
            release.wait(30)

    suspects = FakeSuspects()
    queue = FakeQueue()
    queue.send(event_body(payload="hangs"))
    suspicious = queue.send(event_body(payload="innocent"))
    queue.redeliver(suspicious)
    suspects.known[suspicious] = Suspicion(0, "signal")
    async with a_pool(
        loaded(handler, timeout_seconds=0.1), queue=queue, suspects=suspects, inbox=FakeInbox()
    ) as pool:
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert f"hid {suspicious} for 0 s" in queue.history
    assert pool.hung
    assert suspicious in suspects.known


async def test_a_suspect_that_hangs_alone_ends_its_pool(release: threading.Event) -> None:
    def handler(event: Event[Any]) -> None:
        release.wait(30)

    suspects = FakeSuspects()
    queue = FakeQueue()
    for _ in range(2):
        message_id = queue.send(event_body())
        queue.redeliver(message_id)
        suspects.known[message_id] = Suspicion(0, "signal")
    inbox = FakeInbox()
    async with a_pool(
        loaded(handler, timeout_seconds=0.1), queue=queue, suspects=suspects, inbox=inbox
    ) as pool:
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert pool.hung
    assert list(inbox.attempts.values()) == [1], "only the first has begun"
    assert "hid m2 for 0 s" in queue.history


async def test_a_hung_head_of_a_group_is_hidden_and_its_followers_are_released(
    release: threading.Event,
) -> None:
    def handler(event: Event[Any]) -> None:
        release.wait(30)

    inbox = FakeInbox()
    queue = FakeQueue(name="orders.fifo")
    for _ in range(3):
        queue.send(event_body(), group="one")
    async with a_pool(
        loaded(handler, timeout_seconds=0.1),
        queue=queue,
        inbox=inbox,
        queue_name="orders.fifo",
        backoff=FIXED,
    ) as pool:
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert list(inbox.attempts.values()) == [1]
    assert {"hid m1 for 7 s", "hid m2 for 0 s", "hid m3 for 0 s"} <= set(queue.history)
    assert pool.hung


async def test_a_drain_that_a_hung_handler_outlasts_says_so(release: threading.Event) -> None:
    """The daemon's exit code has to tell that something was cut off."""

    def handler(event: Event[Any]) -> None:
        release.wait(30)

    async with a_pool(loaded(handler, timeout_seconds=0.3), inbox=FakeInbox()) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        await pool.drain(5.0)
        with anyio.fail_after(6):
            await pool.finished.wait()
    assert pool.overran
    assert not pool.hung


async def test_a_thread_that_ends_just_after_its_time_counts_as_it_ended() -> None:
    """The pool has begun to retire; what took effect is not called a timeout any more."""
    looking = threading.Event()

    def handler(event: Event[Any]) -> None:
        looking.wait(0.3)

    async def neighbour(event: Event[Any]) -> None:
        await anyio.sleep(0.6)

    async with a_pool(
        loaded(handler, event="order.created", timeout_seconds=0.1),
        loaded(neighbour, event="order.other"),
        inbox=FakeInbox(),
    ) as pool:
        pool.queue.send(event_body())
        pool.queue.send(event_body("order.other"))
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert pool.queue.size == 0
    assert pool.observed.count(Processed.OK) == 2
    assert pool.hung, "its successor is to be started all the same"
