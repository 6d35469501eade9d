"""FIFO queues: the messages of a group in order, and groups beside each other."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import pytest

from outboxd import Event, Reject
from outboxd.channels.protocol import LeaseLost
from outboxd.core.clock import boottime
from outboxd.core.letters import Letter
from outboxd.core.settings import BackoffSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.queue import Refusal
from tests.consumer.fake_queue import FakeQueue
from tests.consumer.scene import OWNER, FakeInbox, Pool, a_pool, event_body, eventually, loaded

FIFO: dict[str, Any] = {"queue_name": "orders.fifo"}
FIXED = BackoffSettings(first_seconds=2, factor=1, jitter="none")


def send(pool: Pool, group: str, payload: object) -> str:
    return pool.queue.send(event_body(payload=payload), group=group)


async def test_a_group_is_handled_in_order_and_groups_beside_each_other() -> None:
    order: list[str] = []
    running: dict[str, int] = {}
    both = anyio.Event()

    async def handler(event: Event[Any]) -> None:
        group = event.payload[0]
        running[group] = running.get(group, 0) + 1
        assert running[group] == 1, "two messages of one group at the same time"
        if len([g for g, count in running.items() if count]) == 2:
            both.set()
        with anyio.move_on_after(0.5):
            await both.wait()
        order.append(event.payload)
        running[group] -= 1

    queue = FakeQueue(name="orders.fifo")
    for number in range(4):
        for group in "ab":
            queue.send(event_body(payload=f"{group}{number}"), group=group)
    async with a_pool(loaded(handler), queue=queue, concurrency=10, **FIFO) as pool:
        await eventually(lambda: queue.size == 0)
        assert pool.progress.in_flight == 0
    assert both.is_set(), "groups did not run beside each other"
    for group in "ab":
        assert [o for o in order if o[0] == group] == [f"{group}{n}" for n in range(4)]


async def test_a_failed_head_is_hidden_before_its_followers_are_released() -> None:
    handled: list[str] = []

    async def handler(event: Event[Any]) -> None:
        if event.payload == "head" and not handled:
            handled.append("failed")
            raise RuntimeError("not yet")
        handled.append(event.payload)

    async with a_pool(
        loaded(handler), inbox=FakeInbox(), concurrency=4, backoff=FIXED, **FIFO
    ) as pool:
        for payload in ("head", "second", "third"):
            send(pool, "g", payload)
        await pool.sees("hid m3 for 0 s")
        history = pool.queue.history
        assert history.index("hid m1 for 2 s") < history.index("hid m2 for 0 s")
        assert handled == ["failed"]
        pool.queue.hurry()
        await eventually(lambda: pool.queue.size == 0)
    assert handled == ["failed", "head", "second", "third"]


async def test_followers_of_a_failing_head_lose_no_receives() -> None:
    attempts = 0

    async def handler(event: Event[Any]) -> None:
        nonlocal attempts
        if event.payload == "head":
            attempts += 1
            raise RuntimeError("never")

    async with a_pool(
        loaded(handler), inbox=FakeInbox(), max_attempts=6, backoff=FIXED, **FIFO
    ) as pool:
        for payload in ("head", "second", "third"):
            send(pool, "g", payload)
        await pool.sees("hid m3 for 0 s")
        for attempt in range(1, 6):
            await eventually(partial(failed_times, pool, attempt))
            # One that was on its way at the first failure is wide: nobody could know.
            await eventually(partial(receives_beyond, pool, pool.queue.receives))
            assert pool.queue.receives_of("m2") == 1
            pool.queue.hurry()
        await eventually(lambda: pool.queue.size == 0)
    assert attempts == 6
    assert pool.observed.dead == [("handler", "max_attempts")]
    # The last receive of the head is narrow too; each follower came twice, the first time with it.
    assert pool.observed.count(Processed.OK) == 2


def receives_beyond(pool: Pool, count: int) -> bool:
    return pool.queue.receives > count


def failed_times(pool: Pool, times: int) -> bool:
    """Whether the first message is hidden for its so-many-th backoff, and everybody knows."""
    heads = pool.consumer._pool.failed_heads
    return pool.queue.history.count("hid m1 for 2 s") == times and "m1" in heads._visible_at


async def test_a_head_that_was_lost_while_it_ran_lets_no_follower_run() -> None:
    """It is in other hands, and is to be handled there before them; so is its letter."""
    ran: list[object] = []
    go_on = anyio.Event()

    async def handler(event: Event[Any]) -> None:
        ran.append(event.payload)
        if len(ran) == 1:
            await go_on.wait()
            raise Reject("no")

    async with a_pool(loaded(handler), inbox=FakeInbox(), **FIFO) as pool:
        send(pool, "g", "head")
        send(pool, "g", "second")
        await eventually(lambda: ran == ["head"])
        (head, _) = pool.consumer._pool.hand._items.values()
        await pool.counterpart.tell(LeaseLost(OWNER, (head.lease.token,)))
        await eventually(lambda: head.lost)
        go_on.set()
        await pool.sees("hid m2 for 0 s")
        assert ran == ["head"]
        assert pool.queue.letters == []


async def test_a_lost_message_without_a_handler_is_left_to_who_has_it_now() -> None:
    go_on = anyio.Event()
    ran: list[object] = []

    async def handler(event: Event[Any]) -> None:
        ran.append(event.payload)
        await go_on.wait()

    async with a_pool(loaded(handler), **FIFO) as pool:
        send(pool, "g", "head")
        pool.queue.send("{", group="g")
        send(pool, "g", "third")
        await eventually(lambda: ran == ["head"])
        malformed = list(pool.consumer._pool.hand._items.values())[1]
        await pool.counterpart.tell(LeaseLost(OWNER, (malformed.lease.token,)))
        await eventually(lambda: malformed.lost)
        go_on.set()
        await pool.sees("hid m3 for 0 s")
        assert pool.queue.letters == []
        assert ran == ["head"]


async def test_other_groups_go_on_while_letters_cannot_be_sent() -> None:
    """Their slots are free again, and so must be workers."""
    handled: list[object] = []

    async def handler(event: Event[Any]) -> None:
        if event.payload == "poison":
            raise Reject("no")
        handled.append(event.payload)

    async with a_pool(loaded(handler), inbox=FakeInbox(), concurrency=2, **FIFO) as pool:
        hangs = anyio.Event()
        bury = pool.queue.bury

        async def slow(letters: Sequence[Letter]) -> Sequence[Refusal]:
            await hangs.wait()
            return await bury(letters)

        pool.queue.bury = slow  # type: ignore[method-assign]
        for number in range(4):
            send(pool, f"p{number}", "poison")
        for number in range(4):
            send(pool, f"g{number}", number)
        await eventually(lambda: len(handled) == 4)
        hangs.set()
        await eventually(lambda: len(pool.queue.letters) == 4)


@pytest.mark.parametrize("body", ["{", event_body("order.unknown.type")])
async def test_a_head_without_a_handler_is_buried_before_its_followers_run(body: str) -> None:
    async def handler(event: Event[Any]) -> None:
        pool.queue.history.append("ran")

    async with a_pool(loaded(handler, event="order.created"), **FIFO) as pool:
        pool.queue.send(body, group="g")
        send(pool, "g", "second")
        await eventually(lambda: pool.queue.size == 0)
    history = pool.queue.history
    assert history.index("deleted m1") < history.index("ran")
    assert len(pool.queue.letters) == 1


async def test_followers_wait_while_no_letter_can_be_sent_for_their_head() -> None:
    ran: list[object] = []

    async def handler(event: Event[Any]) -> None:
        ran.append(event.payload)
        if event.payload == "head":
            raise Reject("no")

    async with a_pool(loaded(handler), inbox=FakeInbox(), **FIFO) as pool:
        pool.queue.takes_letters = False
        send(pool, "g", "head")
        send(pool, "g", "second")
        await pool.sees("hid m2 for 0 s")
        assert ran == ["head"]
        pool.queue.takes_letters = True
        pool.queue.hurry()
        await eventually(lambda: pool.queue.size == 0)
    assert ran == ["head", "second"]
    assert len(pool.queue.letters) == 1


async def test_a_lost_lease_stops_the_groups_runner() -> None:
    ran: list[object] = []
    go_on = anyio.Event()

    async def handler(event: Event[Any]) -> None:
        ran.append(event.payload)
        await go_on.wait()

    async with a_pool(loaded(handler), **FIFO) as pool:
        for payload in ("head", "second", "third"):
            send(pool, "g", payload)
        await eventually(lambda: ran == ["head"])
        (second, third) = list(pool.consumer._pool.hand._items.values())[1:]
        await pool.counterpart.tell(LeaseLost(OWNER, (second.lease.token,)))
        await eventually(lambda: second.lost)
        go_on.set()
        await pool.sees("hid m3 for 0 s")
        assert not third.lost
        pool.queue.again("m2")
        await eventually(lambda: pool.queue.size == 0)
    assert ran == ["head", "second", "third"]
    assert pool.observed.count(Processed.LOST) == 1


async def test_a_stop_releases_the_followers_of_a_slow_head_at_once() -> None:
    started = anyio.Event()
    go_on = anyio.Event()

    async def handler(event: Event[Any]) -> None:
        started.set()
        await go_on.wait()

    async with a_pool(loaded(handler), concurrency=10, **FIFO) as pool:
        for number in range(10):
            send(pool, "g", number)
        await started.wait()
        await pool.drain(5.0)
        await pool.sees("hid m10 for 0 s")
        assert not pool.finished.is_set()
        assert pool.queue.visible == 9
        go_on.set()
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert pool.queue.size == pool.queue.visible == 9
    assert pool.observed.retries == []


async def test_a_follower_may_wait_longer_than_its_visibility_timeout() -> None:
    """The extender keeps its lease for as long as those before it may take."""
    started: list[object] = []
    now = boottime()
    ahead = 0.0

    def clock() -> float:
        return now + ahead

    async def slow(event: Event[Any]) -> None:
        nonlocal ahead
        started.append(event.payload)
        queue.extend(40.0)
        ahead += 40.0

    queue = FakeQueue(clock, name="orders.fifo")
    for payload in ("head", "second"):
        queue.send(event_body(payload=payload), group="g")
    async with a_pool(loaded(slow, timeout_seconds=60), queue=queue, clock=clock, **FIFO) as pool:
        await eventually(lambda: queue.size == 0)
    assert started == ["head", "second"]
    assert pool.observed.count(Processed.LOST) == 0
