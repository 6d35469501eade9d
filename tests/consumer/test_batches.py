"""Handlers that take messages by the batch."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from outboxd import Event
from outboxd.adapters.handlers import LoadedHandler
from outboxd.core.judging import Away, Busy, Ending, Raised, Returned
from outboxd.core.outcomes import Done
from outboxd.core.settings import BackoffSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.handling import BatchDone, BatchEnding, BatchFailed, Call
from tests.consumer.fake_queue import FakeQueue
from tests.consumer.scene import (
    FakeInbox,
    a_pool,
    event_body,
    eventually,
    loaded,
    reason,
)

POISON = "poison"


class BatchRunner:
    """Keeps what it was called with; a batch with poison in it fails, and so does poison alone."""

    def __init__(self, *endings: BatchEnding) -> None:
        self.batches: list[list[bytes]] = []
        self.singles: list[bytes] = []
        self._endings = list(endings)

    def interruptible(self, handler: str) -> bool:
        return True

    async def run(self, handler: str, call: Call) -> Ending:
        payload = bytes(call.incoming.payload)
        self.singles.append(payload)
        if POISON.encode() in payload:
            return Raised("poison")
        return Returned(Done())

    async def run_batch(self, handler: str, calls: Sequence[Call]) -> BatchEnding:
        payloads = [bytes(call.incoming.payload) for call in calls]
        self.batches.append(payloads)
        await anyio.lowlevel.checkpoint()
        if self._endings:
            return self._endings.pop(0)
        if any(POISON.encode() in payload for payload in payloads):
            return BatchFailed("poison")
        return BatchDone()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends the threads of a test, whatever became of it."""
    event = threading.Event()
    yield event
    event.set()


async def project(events: list[Event[Any]]) -> None: ...


def batch_handler(**changes: Any) -> LoadedHandler:
    return loaded(
        project, **{"batch": 10, "batch_wait_seconds": 0.2, "timeout_seconds": 5, **changes}
    )


async def test_messages_wait_for_each_other_and_run_together() -> None:
    runner = BatchRunner()
    queue = FakeQueue()
    for number in range(25):
        queue.send(event_body(payload=number))
    async with a_pool(batch_handler(), queue=queue, runner=runner, concurrency=20) as pool:
        await eventually(lambda: queue.size == 0)
        assert pool.progress.in_flight == 0
    assert sorted(len(batch) for batch in runner.batches) == [5, 10, 10]
    assert runner.singles == []
    assert pool.observed.count(Processed.OK) == 25


async def test_a_batch_that_does_not_fill_runs_when_its_time_has_come() -> None:
    runner = BatchRunner()
    async with a_pool(batch_handler(batch_wait_seconds=0.05), runner=runner) as pool:
        pool.queue.send(event_body(payload=1))
        await eventually(lambda: pool.queue.size == 0)
    assert runner.batches == [[b"1"]]


async def test_a_failed_batch_isolates_its_poison_and_counts_only_that() -> None:
    runner = BatchRunner()
    inbox = FakeInbox()
    async with a_pool(
        batch_handler(batch_wait_seconds=0.05),
        runner=runner,
        inbox=inbox,
        concurrency=10,
        max_attempts=3,
        backoff=BackoffSettings(first_seconds=1, jitter="none"),
    ) as pool:
        for number in range(6):
            pool.queue.send(event_body(payload=POISON if number == 3 else number))
        await pool.sees("hid m4 for 1 s")
        await eventually(lambda: pool.queue.size == 1)
        assert list(inbox.attempts.values()) == [1]
        assert len(runner.singles) == 6
        for _ in range(2):
            pool.queue.hurry()
            await eventually(lambda: pool.queue.backing_off("m4") or not pool.queue.size)
        await eventually(lambda: pool.queue.size == 0)
    # What has failed before is not put into a batch again, where it would spoil it for the others.
    assert len(runner.batches) == 1
    assert list(inbox.attempts.values()) == [3]
    assert pool.observed.dead == [("project", "max_attempts")]
    assert reason(pool.queue.letters[0].attributes)["reason"] == "max_attempts"


async def test_what_is_left_out_of_a_batch_runs_alone_and_duplicates_do_not_run() -> None:
    runner = BatchRunner(BatchDone(duplicates=frozenset({0}), left_out=frozenset({2})))
    async with a_pool(batch_handler(batch=3), runner=runner, concurrency=3) as pool:
        for number in range(3):
            pool.queue.send(event_body(payload=number))
        await eventually(lambda: pool.queue.size == 0)
    assert runner.singles == [b"2"]
    assert pool.observed.count(Processed.DUPLICATE) == 1
    assert pool.observed.count(Processed.OK) == 2


async def test_a_batch_that_meets_an_outage_costs_no_attempt() -> None:
    runner = BatchRunner(Away("no database"))
    inbox = FakeInbox()
    async with a_pool(batch_handler(batch=2), runner=runner, inbox=inbox, concurrency=2) as pool:
        pool.queue.send(event_body())
        pool.queue.send(event_body())
        await pool.sees("hid m1 for 5 s")
        pool.queue.hurry()
        await eventually(lambda: pool.queue.size == 0)
    assert inbox.attempts == {}
    assert runner.singles == []
    assert pool.observed.retries == [("project", "database")] * 2


async def test_a_batch_whose_marks_are_in_other_hands_is_put_back() -> None:
    runner = BatchRunner(Busy())
    inbox = FakeInbox()
    async with a_pool(batch_handler(batch=2), runner=runner, inbox=inbox, concurrency=2) as pool:
        pool.queue.send(event_body())
        pool.queue.send(event_body())
        await pool.sees("hid m2 for 5 s")
        pool.queue.hurry()
        await eventually(lambda: pool.queue.size == 0)
    assert inbox.attempts == {}
    assert pool.observed.retries == [("project", "busy")] * 2


async def test_a_stop_releases_what_waits_for_company() -> None:
    runner = BatchRunner()
    async with a_pool(batch_handler(batch_wait_seconds=60), runner=runner, concurrency=10) as pool:
        for _ in range(3):
            pool.queue.send(event_body())
        await eventually(lambda: pool.consumer._pool.hand.active == 3)
        await pool.drained()
    assert pool.queue.visible == pool.queue.size == 3
    assert runner.batches == []


async def test_a_hung_batch_counts_against_nobody_for_good(release: threading.Event) -> None:
    """Whose fault it was is not known: each runs alone the next time."""

    class Hangs(BatchRunner):
        def interruptible(self, handler: str) -> bool:
            return False

        async def run_batch(self, handler: str, calls: Sequence[Call]) -> BatchEnding:
            await to_thread.run_sync(release.wait, 30, abandon_on_cancel=True)
            return BatchDone()

    inbox = FakeInbox()
    handler = batch_handler(batch=2, timeout_seconds=0.1)
    async with a_pool(handler, runner=Hangs(), inbox=inbox, concurrency=2, max_attempts=1) as pool:
        pool.queue.send(event_body())
        pool.queue.send(event_body())
        with anyio.fail_after(5):
            await pool.finished.wait()
    assert pool.hung
    assert list(inbox.attempts.values()) == [0, 0]
    assert pool.queue.letters == []
    runner = BatchRunner()
    pool.queue.hurry()
    async with a_pool(
        handler, queue=pool.queue, runner=runner, inbox=inbox, concurrency=2, max_attempts=1
    ) as successor:
        await eventually(lambda: successor.queue.size == 0)
    assert runner.batches == []
    assert len(runner.singles) == 2
    assert successor.queue.letters == []


async def test_a_bug_in_a_batch_ends_neither_the_pool_nor_its_messages() -> None:
    class Buggy(BatchRunner):
        async def run_batch(self, handler: str, calls: Sequence[Call]) -> BatchEnding:
            raise RuntimeError("a bug")

    runner = Buggy()
    async with a_pool(batch_handler(batch=2), runner=runner, concurrency=2) as pool:
        pool.queue.send(event_body())
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)
    assert len(runner.singles) == 2


async def test_what_stays_in_other_hands_is_looked_at_less_and_less_often() -> None:
    """Each look is a receive, and the queue's own redrive policy counts those."""
    queue = FakeQueue()
    runner = BatchRunner(*[Busy()] * 11)
    message_id = queue.send(event_body())
    async with a_pool(
        batch_handler(batch=2, batch_wait_seconds=0.01),
        queue=queue,
        runner=runner,
        inbox=FakeInbox(),
    ) as pool:
        for _ in range(11):
            await eventually(lambda: queue.backing_off(message_id))
            queue.hurry()
        await eventually(lambda: queue.size == 0)
    delays = [fact for fact in pool.queue.history if fact.startswith("hid")]
    assert delays == [f"hid m1 for {n} s" for n in (5, 5, 5, 5, 10, 10, 10, 10, 10, 15, 15)]
