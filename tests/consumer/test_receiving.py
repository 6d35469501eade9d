"""When messages are received, and when they are not."""

from typing import Any

import anyio

from outboxd import Event
from outboxd.channels.protocol import ExtenderDown, ExtenderUp, Hold, Pause, Ready, Resume
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.ports.consumer_observer import Processed
from tests.consumer.fake_queue import FakeQueue
from tests.consumer.scene import QUICK, FakeInbox, a_pool, event_body, eventually, loaded


async def succeeds(event: Event[Any]) -> None: ...


class Crowd:
    """A handler that counts how many of it run, until it is told to let go."""

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self.let_go = anyio.Event()

    async def __call__(self, event: Event[Any]) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.let_go.wait()
        self.now -= 1


async def test_no_more_is_received_than_there_are_free_slots() -> None:
    crowd = Crowd()
    async with a_pool(loaded(crowd, "crowd"), concurrency=3) as pool:
        for _ in range(10):
            pool.queue.send(event_body())
        await eventually(lambda: crowd.now == 3)
        receives = pool.queue.receives
        await anyio.sleep(0.05)
        assert pool.queue.visible == 7
        assert pool.queue.receives == receives, "a full pool must not poll"
        crowd.let_go.set()
        await eventually(lambda: pool.queue.size == 0)
    assert crowd.most == 3


async def test_ready_is_said_once_the_first_poll_is_on_its_way() -> None:
    queue = FakeQueue()
    queue.hold_receives = anyio.Event()
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        with anyio.fail_after(5):
            await pool.extender.ready.wait()
            await queue.receiving.wait()
        queue.hold_receives.set()
    assert sum(isinstance(m, Ready) for m in pool.extender.heard) == 1


async def test_a_pool_without_an_extender_is_ready_and_waits() -> None:
    async with a_pool(loaded(succeeds), extender_up=False) as pool:
        pool.queue.send(event_body())
        with anyio.fail_after(5):
            await pool.extender.ready.wait()
        await anyio.sleep(0.02)
        assert pool.queue.receives == 0
        await pool.counterpart.tell(ExtenderUp())
        await eventually(lambda: pool.queue.size == 0)


async def test_a_pause_stops_receiving_until_resume_whatever_the_extender_does() -> None:
    async with a_pool(loaded(succeeds)) as pool:
        await pool.counterpart.tell(Pause("another"))
        await pool.counterpart.tell(Pause("orders"))
        await pool.counterpart.tell(ExtenderDown())
        await pool.counterpart.tell(ExtenderUp())
        await eventually(lambda: not pool.consumer._pool.gates.open)
        await anyio.sleep(0.1)
        receives = pool.queue.receives
        pool.queue.send(event_body())
        await anyio.sleep(0.05)
        assert pool.queue.receives == receives
        await pool.counterpart.tell(Resume("orders"))
        await eventually(lambda: pool.queue.size == 0)


async def test_a_queue_that_cannot_be_reached_is_asked_slowly() -> None:
    queue = FakeQueue()
    queue.fail("receive", *[Unavailable("closed port")] * 5)
    queue.fail("receive", *[Unavailable("denied", OutageKind.DENIED)] * 3)
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        queue.send(event_body())
        await eventually(lambda: queue.size == 0)
    assert pool.observed.receive_failures == ["unreachable"] * 5 + ["denied"] * 3


async def test_receive_errors_back_off_to_a_bound() -> None:
    backoff = QUICK.receive_backoff.__class__(first_seconds=0.5, cap_seconds=20)
    delays = [backoff.delay(n, lambda: 0.0) for n in range(1, 12)]
    assert sum(delays[:7]) > 30, "fewer than ten tries in half a minute"
    assert max(delays) == 20


async def test_a_message_whose_lease_ran_out_before_it_was_looked_at_is_dropped() -> None:
    """The process stood still between SQS's answer and its own next step."""
    now = 1000.0
    queue = FakeQueue(lambda: now)
    queue.hold_receives = anyio.Event()
    async with a_pool(loaded(succeeds), queue=queue, clock=lambda: now) as pool:
        queue.send(event_body())
        await queue.receiving.wait()
        now += 31
        queue.hold_receives.set()
        await eventually(lambda: queue.receives >= 2)
        await eventually(lambda: queue.size == 0)
    assert pool.observed.count(Processed.OK) == 1
    assert sum(isinstance(m, Hold) for m in pool.extender.heard) == 1


async def test_a_lease_that_runs_out_while_the_extender_is_told_is_dropped() -> None:
    now = 1000.0
    runs: list[int] = []

    async def notes(event: Event[Any]) -> None:
        runs.append(1)

    async with a_pool(loaded(notes), clock=lambda: now, extender_up=False) as pool:
        hold = pool.consumer._leases.hold

        async def stalls(items: object) -> None:
            nonlocal now
            await hold(items)  # type: ignore[arg-type]
            if not runs:
                now += 31
                pool.consumer._leases.hold = hold  # type: ignore[method-assign]

        pool.consumer._leases.hold = stalls  # type: ignore[method-assign]
        await pool.counterpart.tell(ExtenderUp())
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.count(Processed.LOST) == 1)
        await eventually(lambda: pool.queue.size == 0)
        await eventually(lambda: not pool.extender.tokens_held())
    assert runs == [1]


async def test_an_outage_of_the_database_counts_no_attempt_and_stops_receiving() -> None:
    inbox = FakeInbox()

    async def fails(event: Event[Any]) -> None:
        inbox.away = True
        raise ValueError("and then the database went away")

    async with a_pool(loaded(fails), inbox=inbox, max_attempts=1) as pool:
        pool.queue.send(event_body())
        await pool.sees("hid m1 for 5 s")
        await eventually(lambda: inbox.pings > 5)
        receives = pool.queue.receives
        pool.queue.send(event_body())
        await anyio.sleep(0.05)
        assert pool.queue.receives == receives
        assert not pool.queue.letters
        assert pool.observed.retries == [("fails", "database")]
        inbox.away = False
        await eventually(lambda: pool.queue.receives > receives)


async def test_a_pool_starts_while_its_database_is_away() -> None:
    inbox = FakeInbox()
    inbox.away = True
    async with a_pool(loaded(succeeds), inbox=inbox) as pool:
        pool.queue.send(event_body())
        with anyio.fail_after(5):
            await pool.extender.ready.wait()
        await eventually(lambda: inbox.pings > 3)
        assert pool.queue.receives == 0
        inbox.away = False
        await eventually(lambda: pool.queue.size == 0)


async def test_only_the_first_process_of_a_pool_counts_the_queue() -> None:
    async with a_pool(loaded(succeeds)) as pool:
        await eventually(lambda: len(pool.observed.depths) >= 2)


async def test_a_failing_count_does_not_disturb_anything() -> None:
    queue = FakeQueue()

    async def no_depth() -> None:
        raise Unavailable("denied", OutageKind.DENIED)

    queue.depth = no_depth  # type: ignore[assignment, method-assign]
    async with a_pool(loaded(succeeds), queue=queue):
        queue.send(event_body())
        await eventually(lambda: queue.size == 0)
