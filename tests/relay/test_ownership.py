import time
from collections import Counter
from uuid import UUID, uuid4

import anyio
import pytest

from outboxd.adapters.postgres.buckets import PostgresBuckets
from outboxd.channels.protocol import Drain
from outboxd.core.clock import boottime
from outboxd.core.outbox import BUCKETS, StoredEvent
from outboxd.core.relay_outcomes import EntryResult, Faulted
from tests.relay.scene import ACCEPTED, FakeDestination, Gate, Scene, eventually, quick


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


async def test_a_row_settled_between_a_reads_snapshot_and_its_answer_is_not_published_again(
    scene: Scene,
) -> None:
    queue = FakeDestination()
    marks, answer, asked = anyio.Event(), anyio.Event(), anyio.Event()

    async def hold_the_answer(page: list[StoredEvent]) -> None:
        if queue.seqs and not answer.is_set():
            asked.set()
            await answer.wait()

    async with scene.relay(queue) as relay:
        relay.outbox.before_mark = marks.wait
        relay.outbox.after_read = hold_the_answer
        seqs = scene.insert([f"order-{n}" for n in range(20)])
        # The snapshot is taken: every row is accepted, and pending in the table.
        await asked.wait()
        await eventually(lambda: len(queue.seqs) == 20)
        marks.set()
        await eventually(lambda: relay.outbox.marked == 20)
        answer.set()
        later = scene.insert([f"order-{n}" for n in range(20)])
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs + later


async def test_a_bucket_with_accepted_but_unmarked_rows_is_not_given_up(scene: Scene) -> None:
    queue = FakeDestination()
    marks = anyio.Event()
    seqs = scene.insert([f"order-{n}" for n in range(300)])

    async with scene.relay(queue) as first:
        first.outbox.before_mark = marks.wait
        await eventually(lambda: len(queue.seqs) == 300)
        async with scene.relay(queue) as second:
            # The first wants to give half of its buckets up, but may not yet.
            await eventually(lambda: second.outbox.reads > 0 or first.facts.count("measured") > 1)
            await anyio.sleep(0.6)
            assert scene.owned()[second.identity] < BUCKETS / 2
            marks.set()
            await eventually(lambda: scene.owned()[second.identity] >= BUCKETS / 2 - 1)
            await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs


async def test_the_answer_of_a_read_of_before_a_change_of_owner_is_discarded(scene: Scene) -> None:
    queue, thief = FakeDestination(), uuid4()
    asked, answer = anyio.Event(), anyio.Event()

    async def hold_the_first_answer(page: list[StoredEvent]) -> None:
        if page and not answer.is_set():
            asked.set()
            await answer.wait()

    async with scene.relay(queue) as relay:
        relay.outbox.after_read = hold_the_first_answer
        seqs = scene.insert(["order-1", "order-2"])
        await asked.wait()
        # Another relay owns the buckets for a moment, publishes, and gives them up again.
        _steal(scene, thief)
        scene.run("UPDATE outbox_events SET published_at = now() WHERE seq = %s", seqs[0])
        await eventually(lambda: relay.facts.count("lost_buckets") == 1)
        scene.run("UPDATE outbox_buckets SET owner = NULL, lease_until = NULL")
        await eventually(lambda: scene.owned() == {relay.identity: BUCKETS})
        answer.set()
        await eventually(lambda: not scene.pending())

    assert queue.seqs == seqs[1:]


async def test_relays_share_the_buckets_and_rebalance_without_repeating(scene: Scene) -> None:
    queue = FakeDestination()
    seqs: list[int] = []
    done = anyio.Event()

    async def produce() -> None:
        while not done.is_set():
            seqs.extend(scene.insert([f"order-{n}" for n in range(40)]))
            await anyio.sleep(0.01)

    async with anyio.create_task_group() as tasks, scene.relay(queue) as first:
        await eventually(lambda: scene.owned()[first.identity] == BUCKETS)
        tasks.start_soon(produce)
        async with scene.relay(queue) as second, scene.relay(queue) as third:
            await eventually(lambda: _balanced(scene.owned(), 3))
            await third.drain()
            await eventually(lambda: _balanced(scene.owned(), 2))
            assert second.identity in scene.owned()
        await eventually(lambda: scene.owned()[first.identity] == BUCKETS)
        done.set()
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == sorted(seqs)
    assert queue.inversions == []


async def test_one_hot_aggregate_under_three_relays_is_published_once_and_in_order(
    scene: Scene,
) -> None:
    queue = FakeDestination()
    seqs = scene.insert(["hot"] * 300)

    async with scene.relay(queue), scene.relay(queue), scene.relay(queue):
        for _ in range(10):
            seqs += scene.insert(["hot"] * 20)
            await anyio.sleep(0.02)
        await eventually(lambda: not scene.pending())

    assert queue.seqs == seqs


async def test_buckets_that_are_won_while_the_relay_is_told_to_drain_are_given_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They used to stay its own until their leases ended."""
    claim, claimed, answer = PostgresBuckets.claim, anyio.Event(), anyio.Event()

    async def hold_the_answer(
        buckets: PostgresBuckets, relay: UUID, count: int, lease_seconds: float
    ) -> dict[int, int]:
        won = await claim(buckets, relay, count, lease_seconds)
        claimed.set()
        await answer.wait()
        return won

    monkeypatch.setattr(PostgresBuckets, "claim", hold_the_answer)
    settings = quick(renew_seconds=6.0, lease_seconds=60.0)
    async with scene.relay(FakeDestination(), settings) as relay:
        await claimed.wait()
        await relay.counterpart.tell(Drain(boottime() + 10))
        await anyio.sleep(0.1)
        answer.set()
        with anyio.fail_after(10):
            await relay.ended.wait()

    assert scene.owned() == {}


def _balanced(owned: Counter[UUID], relays: int) -> bool:
    share = -(-BUCKETS // relays)
    return len(owned) == relays and max(owned.values()) <= share + 1 and owned.total() == BUCKETS


async def test_the_buckets_of_a_reaped_predecessor_are_taken_over_at_once(scene: Scene) -> None:
    dead = uuid4()
    scene.run(
        "UPDATE outbox_buckets SET owner = %s, epoch = 7,"
        " lease_until = clock_timestamp() + interval '1 hour'",
        dead,
    )
    scene.run("INSERT INTO outbox_relays (id, host, pid) VALUES (%s, 'here', 1)", dead)
    queue = FakeDestination()
    seqs = scene.insert(["order-1", "order-2"])

    async with scene.relay(queue, predecessors=[dead]) as relay:
        await eventually(lambda: sorted(queue.seqs) == seqs)
        assert scene.owned() == {relay.identity: BUCKETS}
        assert scene.ask("SELECT DISTINCT epoch FROM outbox_buckets") == [(8,)]
        assert scene.ask("SELECT id FROM outbox_relays") == [(relay.identity,)]


async def test_a_lease_that_has_run_out_sends_nothing(scene: Scene) -> None:
    gate, queue, jump = Gate(), FakeDestination(), [0.0]
    queue.open = gate.pass_through  # type: ignore[method-assign]
    seqs = scene.insert([f"order-{n}" for n in range(5)])

    async with scene.relay(queue, clock=lambda: boottime() + jump[0]) as relay:
        await eventually(lambda: gate.waiting == 1)
        with scene.connection() as connection, connection.transaction():
            connection.execute("LOCK TABLE outbox_buckets IN ACCESS EXCLUSIVE MODE")
            # As after SIGSTOP, right before the call: the lease is over, and cannot be renewed.
            jump[0] = 60.0
            gate.open()
            await eventually(lambda: relay.progress.in_flight == 0)
            assert queue.packs == []
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs


async def test_a_host_that_slept_during_a_read_goes_on_at_once(scene: Scene) -> None:
    queue, jump = FakeDestination(), [0.0]

    async def sleep_an_hour(page: list[StoredEvent]) -> None:
        jump[0] = 3600.0

    async with scene.relay(queue, clock=lambda: boottime() + jump[0]) as relay:
        relay.outbox.after_read = sleep_an_hour
        await eventually(lambda: jump[0] > 0)
        seqs = scene.insert(["order-1"])
        await eventually(lambda: queue.seqs == seqs)


async def test_what_is_accepted_after_the_bucket_was_lost_is_marked_all_the_same(
    scene: Scene,
) -> None:
    gate, thief = Gate(), uuid4()

    def slowly(events: list[StoredEvent]) -> list[EntryResult]:
        gate.pass_through()
        return [ACCEPTED] * len(events)

    queue = FakeDestination(slowly)
    seqs = scene.insert(["order-1", "order-1"])

    async with scene.relay(queue) as relay:
        await eventually(lambda: gate.waiting == 1)
        _steal(scene, thief)
        await eventually(lambda: relay.facts.count("lost_buckets") == 1)
        gate.open()
        await eventually(lambda: scene.pending() == seqs[1:])
        assert scene.owned() == {thief: BUCKETS}

    assert queue.seqs == seqs[:1]


async def test_a_failure_after_the_bucket_was_lost_is_not_recorded(scene: Scene) -> None:
    gate = Gate()

    def slowly_fails(events: list[StoredEvent]) -> list[EntryResult]:
        gate.pass_through()
        return [Faulted("an opinion")] * len(events)

    queue = FakeDestination(slowly_fails)
    scene.insert(["order-1"])

    async with scene.relay(queue) as relay:
        await eventually(lambda: gate.waiting == 1)
        _steal(scene, uuid4())
        gate.open()
        await eventually(lambda: relay.progress.in_flight == 0)

    assert scene.ask("SELECT attempts, last_error FROM outbox_events") == [(0, None)]


def _steal(scene: Scene, thief: object) -> None:
    scene.run(
        "UPDATE outbox_buckets SET owner = %s, epoch = epoch + 1,"
        " lease_until = clock_timestamp() + interval '1 hour'",
        thief,
    )


async def test_a_drain_finishes_what_is_in_flight_and_leaves_no_bucket_owned(scene: Scene) -> None:
    gate = Gate()

    def slowly(events: list[StoredEvent]) -> list[EntryResult]:
        gate.pass_through()
        return [ACCEPTED] * len(events)

    queue = FakeDestination(slowly)
    scene.insert([f"order-{n}" for n in range(500)])

    async with scene.relay(queue) as relay:
        await eventually(lambda: gate.waiting == 1)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(relay.drain)
            await anyio.sleep(0.1)
            assert not relay.ended.is_set()
            gate.open()

    in_time = set(queue.seqs)
    assert len(in_time) == 10
    assert len(scene.pending()) == 490
    assert not in_time & set(scene.pending())
    assert scene.owned() == {}
    assert scene.ask("SELECT count(*) FROM outbox_relays") == [(0,)]


async def test_a_drain_ends_before_its_deadline_whatever_hangs(scene: Scene) -> None:
    gate = Gate()

    def hangs(events: list[StoredEvent]) -> list[EntryResult]:
        gate.pass_through()
        return [ACCEPTED] * len(events)

    scene.insert(["order-1"])

    async with scene.relay(FakeDestination(hangs)) as relay:
        await eventually(lambda: gate.waiting == 1)
        started = time.monotonic()
        await relay.drain(seconds=2.0)
        assert time.monotonic() - started < 2.0
        # The call may still succeed, so its bucket has to stay ours.
        assert scene.owned() == {relay.identity: 1}
        gate.open()


async def test_an_orphan_settles_and_ends(scene: Scene) -> None:
    queue = FakeDestination()
    scene.insert([f"order-{n}" for n in range(100)])

    async with scene.relay(queue) as relay:
        await eventually(lambda: len(queue.seqs) >= 50)
        relay.counterpart.close()
        with anyio.fail_after(5.0):
            await relay.ended.wait()

    assert not set(queue.seqs) & set(scene.pending())
    assert scene.owned() == {}


async def test_a_dead_relay_without_a_successor_is_replaced_when_its_lease_ends(
    scene: Scene,
) -> None:
    scene.run(
        "UPDATE outbox_buckets SET owner = gen_random_uuid(),"
        " lease_until = clock_timestamp() + interval '0.5 s'"
    )
    queue = FakeDestination()
    seqs = scene.insert(["order-1", "order-2"])

    async with scene.relay(queue, quick(renew_seconds=0.1)):
        await eventually(lambda: sorted(queue.seqs) == seqs)
