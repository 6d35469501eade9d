"""What happens when SQS does not do as it is told."""

import random
from collections import Counter
from typing import Any

import anyio
import msgspec
import pytest

from outboxd import Event, Reject
from outboxd.channels.protocol import (
    ExtenderDown,
    Forget,
    Hold,
    LeaseLost,
    Settled,
)
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.settings import BackoffSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.queue import Refusal
from tests.consumer.fake_queue import FakeQueue
from tests.consumer.scene import (
    OWNER,
    QUICK,
    FakeInbox,
    a_pool,
    event_body,
    eventually,
    loaded,
    reason,
)

SLOW_CALLS = msgspec.structs.replace(QUICK, call_timeout_seconds=30)
"""An extension of a lease of 30 s may be in flight at any time."""


async def succeeds(event: Event[Any]) -> None: ...


async def fails(event: Event[Any]) -> None:
    raise ValueError("not today")


async def rejects(event: Event[Any]) -> None:
    raise Reject("never")


def entry(code: str = "InternalError", index: int = 0, *, permanent: bool = False) -> Refusal:
    return Refusal(index, code, "", permanent)


async def test_entries_that_a_delete_did_not_carry_out_are_deleted_again() -> None:
    runs: Counter[str] = Counter()

    async def counts(event: Event[Any]) -> None:
        runs[str(event.id)] += 1

    queue = FakeQueue()
    queue.fail("delete", entry(), entry(index=0), None, entry())
    async with a_pool(loaded(counts), queue=queue, concurrency=10) as pool:
        for _ in range(10):
            queue.send(event_body())
        await eventually(lambda: queue.size == 0)
    assert set(runs.values()) == {1}
    assert set(pool.observed.deletes_failed) == {"server_fault"}
    assert pool.extender.tokens_held() == set()


@pytest.mark.parametrize("kind", [OutageKind.THROTTLED, OutageKind.DENIED, OutageKind.TIMEOUT])
async def test_a_delete_that_fails_as_a_whole_is_tried_until_it_succeeds(kind: OutageKind) -> None:
    queue = FakeQueue()
    queue.fail("delete", *[Unavailable("no", kind)] * 5)
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        queue.send(event_body())
        await eventually(lambda: queue.size == 0)
    assert pool.observed.deletes_failed == [kind.value] * 5


async def test_a_delete_of_a_receipt_that_is_no_longer_ours_is_given_up() -> None:
    queue = FakeQueue()
    queue.fail("delete", entry("ReceiptHandleIsInvalid", permanent=True))
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        queue.send(event_body())
        await eventually(lambda: pool.observed.deletes_failed == ["refused"])
        await eventually(lambda: not pool.extender.tokens_held())
    assert queue.holds("m1")


async def test_deletes_that_never_succeed_stop_the_receiving() -> None:
    """Access denied on DeleteMessage must not become an endless rerun of everything."""
    queue = FakeQueue()
    queue.fail("delete", *[Unavailable("no", OutageKind.DENIED)] * 100_000)
    async with a_pool(loaded(succeeds), queue=queue, concurrency=10) as pool:
        for _ in range(300):
            queue.send(event_body())
        await eventually(lambda: pool.observed.count(Processed.OK) >= 100)
        seen = queue.receives
        await eventually(lambda: len(pool.observed.deletes_failed) > 2000)
        assert queue.receives == seen
        queue.faults.clear()
        await eventually(lambda: queue.size == 0)
    assert pool.observed.count(Processed.OK) == 300


async def test_a_letter_that_is_not_accepted_keeps_the_message() -> None:
    queue = FakeQueue()
    queue.takes_letters = False
    async with a_pool(loaded(rejects), queue=queue) as pool:
        queue.send(event_body())
        await pool.sees("hid m1 for 10 s")
        assert queue.holds("m1")
        assert not pool.observed.dead
        queue.takes_letters = True
        queue.again("m1")
        await eventually(lambda: queue.size == 0)
    assert len(queue.letters) == 1
    assert pool.observed.dead == [("rejects", "rejected")]


async def test_a_letter_that_is_refused_for_good_keeps_the_message() -> None:
    queue = FakeQueue()
    queue.fail("bury", entry("InvalidParameterValue", permanent=True))
    async with a_pool(loaded(rejects), queue=queue) as pool:
        queue.send(event_body())
        await pool.sees("hid m1 for 10 s")
    assert queue.holds("m1")


async def test_poison_that_cannot_be_buried_does_not_stop_its_neighbours() -> None:
    queue = FakeQueue()
    queue.takes_letters = False
    async with a_pool(loaded(succeeds), queue=queue) as pool:
        for _ in range(150):
            queue.send("{")
        for _ in range(20):
            queue.send(event_body())
        await eventually(lambda: pool.observed.count(Processed.OK) == 20, 30)
    assert queue.size == 150


async def test_a_letter_is_not_sent_again_when_only_the_delete_failed() -> None:
    queue = FakeQueue()
    queue.fail("delete", entry(), Unavailable("no"))
    async with a_pool(loaded(rejects), queue=queue):
        queue.send(event_body())
        await eventually(lambda: queue.size == 0)
    assert len(queue.letters) == 1


async def test_a_partly_failed_letter_batch_deletes_only_what_was_accepted() -> None:
    queue = FakeQueue()
    queue.fail("bury", entry(index=1))
    async with a_pool(loaded(rejects), queue=queue, concurrency=10):
        for number in range(5):
            queue.send(event_body(payload=number))
        await eventually(lambda: queue.size == 0)
    assert len({reason(x.attributes)["message_id"] for x in queue.letters}) == 5
    assert len(queue.letters) == 5


async def test_settlements_travel_in_batches() -> None:
    queue = FakeQueue()
    async with a_pool(loaded(succeeds), queue=queue, concurrency=20):
        for _ in range(100):
            queue.send(event_body())
        await eventually(lambda: queue.size == 0)
    deletes = [size for operation, size in queue.batches if operation == "delete"]
    assert len(deletes) <= 30
    assert max(deletes) == 10


async def test_slots_never_leak_under_random_errors() -> None:
    """A fifth of all calls fails; afterwards everything is done and every slot is free."""
    dice = random.Random(7)
    queue = FakeQueue()
    queue.chance = lambda: dice.random() < 0.2

    async def mixed(event: Event[Any]) -> None:
        if dice.random() < 0.1:
            raise ValueError("now and then")

    async with a_pool(
        loaded(mixed),
        queue=queue,
        inbox=FakeInbox(),
        concurrency=10,
        max_attempts=100,
        backoff=BackoffSettings(first_seconds=0.001),
    ) as pool:
        for _ in range(500):
            queue.send(event_body())
        with anyio.fail_after(40):
            while queue.size > 0:
                queue.hurry()
                await anyio.sleep(0.05)
        queue.chance = lambda: False
        await eventually(lambda: pool.consumer._pool.hand.size == 0)
        assert pool.consumer._pool.hand.room() == 10
        assert pool.progress.in_flight == 0
        await eventually(lambda: not pool.extender.tokens_held())


async def test_everything_is_held_before_its_handler_starts() -> None:
    held_at_start: list[int] = []

    async def looks(event: Event[Any]) -> None:
        held_at_start.append(sum(isinstance(m, Hold) for m in pool.extender.heard))

    async with a_pool(loaded(looks)) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)
    assert held_at_start == [1]
    hold = next(m for m in pool.extender.heard if isinstance(m, Hold))
    (lease,) = hold.leases
    assert lease.message_id == "m1"
    assert lease.permitted_until == pytest.approx(lease.received_at + 30 + 15)


async def test_a_lease_is_permitted_as_long_as_all_handlers_together_may_take() -> None:
    handlers = [loaded(succeeds, f"h{n}", timeout_seconds=100) for n in range(3)]
    async with a_pool(*handlers) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.queue.size == 0)
    (lease,) = next(m for m in pool.extender.heard if isinstance(m, Hold)).leases
    assert lease.permitted_until == pytest.approx(lease.received_at + 300 + 15)


async def test_a_delete_does_not_wait_for_forgotten() -> None:
    async with a_pool(loaded(succeeds), timing=SLOW_CALLS) as pool:
        pool.extender.mute = True
        pool.queue.send(event_body())
        await pool.sees("Settled")
    assert pool.queue.history == ["Hold", "deleted m1", "Settled"]


async def test_a_backoff_waits_for_forgotten_when_an_extension_could_be_in_flight() -> None:
    async with a_pool(loaded(fails), timing=SLOW_CALLS) as pool:
        pool.queue.send(event_body())
        await pool.sees("hid m1 for 2 s")
        await pool.sees("Settled")
        assert pool.queue.history == ["Hold", "Forget", "hid m1 for 2 s", "Settled"]


async def test_a_backoff_waits_no_longer_than_a_call_takes() -> None:
    async with a_pool(loaded(fails), visibility_seconds=2, max_attempts=9) as pool:
        pool.extender.mute = True
        began = anyio.current_time()
        pool.queue.send(event_body())
        await pool.sees("Forget")
        assert "hid m1 for 2 s" not in pool.queue.history
        await pool.sees("hid m1 for 2 s")
        assert anyio.current_time() - began >= 1.0


async def test_a_backoff_long_before_any_extension_does_not_wait() -> None:
    async with a_pool(loaded(fails), visibility_seconds=3600) as pool:
        pool.extender.mute = True
        began = anyio.current_time()
        pool.queue.send(event_body())
        await pool.sees("hid m1 for 2 s")
        assert anyio.current_time() - began < 0.9
        assert any(isinstance(m, Forget) for m in pool.extender.heard)


async def test_a_waiting_backoff_does_not_hold_up_deletes() -> None:
    slow = msgspec.structs.replace(QUICK, call_timeout_seconds=2)
    handlers = [loaded(fails, "bad", event="order.bad"), loaded(succeeds, "good", event="order.ok")]
    async with a_pool(*handlers, visibility_seconds=4, timing=slow, concurrency=1) as pool:
        pool.extender.mute = True
        pool.queue.send(event_body("order.bad"))
        pool.queue.send(event_body("order.ok"))
        await pool.sees("hid m1 for 2 s")
    history = pool.queue.history
    assert history.index("deleted m2") < history.index("hid m1 for 2 s")


async def test_while_the_extender_is_down_nothing_is_received_but_work_in_hand_goes_on() -> None:
    go_on = anyio.Event()

    async def waits(event: Event[Any]) -> None:
        await go_on.wait()
        raise ValueError

    async with a_pool(loaded(waits), visibility_seconds=2, max_attempts=9) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        pool.extender.mute = True
        await pool.counterpart.tell(ExtenderDown())
        await eventually(lambda: not pool.consumer._pool.gates.open)
        pool.queue.send(event_body())
        go_on.set()
        await pool.sees("hid m1 for 2 s")
        receives = pool.queue.receives
        await anyio.sleep(0.05)
        assert pool.queue.receives == receives


async def test_a_lost_lease_is_not_hidden_again() -> None:
    """It is in somebody else's hands: hiding it would take it away from there."""
    go_on = anyio.Event()

    async def waits(event: Event[Any]) -> None:
        await go_on.wait()
        raise ValueError

    async with a_pool(loaded(waits), visibility_seconds=3600) as pool:
        pool.queue.send(event_body())
        await eventually(lambda: pool.observed.running == 1)
        (token,) = pool.extender.tokens_held()
        await pool.counterpart.tell(LeaseLost(OWNER, (token,)))
        await eventually(lambda: pool.consumer._pool.hand._items[token].lost)
        go_on.set()
        await eventually(lambda: any(isinstance(m, Settled) for m in pool.extender.heard))
    assert not [e for e in pool.queue.history if e.startswith("hid")]


async def test_a_backoff_never_reaches_beyond_twelve_hours_after_the_receive() -> None:
    now = 1000.0

    async def takes_eleven_hours(event: Event[Any]) -> None:
        nonlocal now
        now += 11 * 3600
        raise ValueError

    async with a_pool(
        loaded(takes_eleven_hours, timeout_seconds=43200),
        clock=lambda: now,
        visibility_seconds=43200,
        backoff=BackoffSettings(first_seconds=10_000, cap_seconds=43_200),
    ) as pool:
        pool.queue.send(event_body())
        await pool.sees("hid m1 for 3600 s")


async def test_a_next_receive_takes_the_word_of_settled_messages_along() -> None:
    """By itself that word wakes the supervisor once more for every batch."""
    patient = msgspec.structs.replace(QUICK, tell_settled_seconds=60.0)
    async with a_pool(loaded(succeeds), timing=patient) as pool:
        pool.queue.send(event_body())
        await pool.sees("deleted m1")
        assert "Settled" not in pool.queue.history
        pool.queue.send(event_body())
        await pool.sees("deleted m2")
        assert pool.queue.history == ["Hold", "deleted m1", "Settled", "Hold", "deleted m2"]
    assert not pool.extender.tokens_held(), "a drain tells the rest"
