import threading
import time
from collections import Counter

import anyio
import pytest

from outboxd.actors.relay import dispatch
from outboxd.core.errors import SettingsError
from outboxd.core.outbox import StoredEvent
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import EntryResult, Faulted, Refused
from outboxd.core.settings import RouteSettings
from outboxd.ports.destination import PackRefused
from tests.relay.scene import ACCEPTED, FakeDestination, Gate, Scene, eventually, quick


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


async def test_events_are_published_once_and_marked(scene: Scene) -> None:
    queue = FakeDestination()
    seqs = scene.insert([f"order-{n % 40}" for n in range(400)])

    async with scene.relay(queue) as relay:
        await relay.ready()
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs
    assert queue.inversions == []
    assert scene.ask("SELECT count(*) FROM outbox_events WHERE published_at IS NULL") == [(0,)]


async def test_packs_are_filled_from_different_aggregates(scene: Scene) -> None:
    queue = FakeDestination()
    scene.insert([f"order-{n}" for n in range(100)])

    async with scene.relay(queue):
        await eventually(lambda: len(queue.seqs) == 100)

    assert sum(len(pack) == 10 for pack in queue.packs) >= 8


async def test_at_most_one_event_of_an_aggregate_is_in_flight(scene: Scene) -> None:
    lock, flying, most = threading.Lock(), Counter[str](), Counter[str]()

    def slowly(events: list[StoredEvent]) -> list[EntryResult]:
        with lock:
            for event in events:
                flying[event.aggregate_id] += 1
                most[event.aggregate_id] = max(most[event.aggregate_id], flying[event.aggregate_id])
        time.sleep(0.005)
        with lock:
            flying.subtract(event.aggregate_id for event in events)
        return [ACCEPTED] * len(events)

    queue = FakeDestination(slowly)
    scene.insert([f"order-{n % 5}" for n in range(200)])

    async with scene.relay(queue):
        await eventually(lambda: len(queue.seqs) == 200)

    assert set(most.values()) == {1}


async def test_the_next_event_does_not_wait_for_the_mark_of_the_one_before(scene: Scene) -> None:
    queue = FakeDestination()
    marks = anyio.Event()
    seqs = scene.insert(["order-1"] * 3)

    async with scene.relay(queue) as relay:
        relay.outbox.before_mark = marks.wait
        await eventually(lambda: queue.seqs == seqs)
        assert scene.pending() == seqs
        marks.set()
        await eventually(lambda: not scene.pending())


async def test_published_rows_are_deleted_without_a_retention(scene: Scene) -> None:
    queue = FakeDestination()
    scene.insert(["order-1", "order-2"])

    async with scene.relay(queue, quick(retention_days=0)):
        await eventually(lambda: scene.ask("SELECT count(*) FROM outbox_events") == [(0,)])

    assert len(queue.seqs) == 2


async def test_a_failed_event_holds_up_its_own_aggregate_only(scene: Scene) -> None:
    failing = threading.Event()
    failing.set()

    def fails_order_1(events: list[StoredEvent]) -> list[EntryResult]:
        bad = failing.is_set()
        return [
            Faulted("InternalError") if bad and event.aggregate_id == "order-1" else ACCEPTED
            for event in events
        ]

    queue = FakeDestination(fails_order_1)
    first, second, other = scene.insert(["order-1", "order-1", "order-2"])

    async with scene.relay(queue):
        await eventually(lambda: queue.seqs == [other])
        await eventually(
            lambda: scene.ask("SELECT attempts FROM outbox_events WHERE seq = %s", first)[0][0] > 2
        )
        assert queue.seqs == [other]
        failing.clear()
        await eventually(lambda: not scene.pending())

    assert queue.seqs == [other, first, second]


async def test_order_survives_entry_failures(scene: Scene) -> None:
    seen = Counter[int]()

    def fails_every_third_first_try(events: list[StoredEvent]) -> list[EntryResult]:
        seen.update(event.seq for event in events)
        return [
            Faulted("InternalError") if event.seq % 3 == 0 and seen[event.seq] == 1 else ACCEPTED
            for event in events
        ]

    queue = FakeDestination(fails_every_third_first_try)
    seqs = scene.insert([f"order-{n % 10}" for n in range(120)])

    async with scene.relay(queue):
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs
    assert queue.inversions == []


async def test_each_entry_of_a_pack_has_its_own_fate(scene: Scene) -> None:
    tries = Counter[str]()

    def mixed(events: list[StoredEvent]) -> list[EntryResult]:
        tries.update(event.aggregate_id for event in events)
        fates: dict[str, EntryResult] = {
            "order-2": Refused("InvalidMessageContents"),
            "order-3": Faulted("InternalError"),
            "order-4": Faulted("RequestThrottled", blameless=True),
        }
        return [
            fates[event.aggregate_id]
            if event.aggregate_id in fates and tries[event.aggregate_id] == 1
            else ACCEPTED
            for event in events
        ]

    queue = FakeDestination(mixed)
    good, refused, failed, throttled = scene.insert([f"order-{n}" for n in range(1, 5)])

    async with scene.relay(queue) as relay:
        await eventually(lambda: not scene.pending())
        facts = relay.facts

    assert sorted(queue.seqs) == [good, failed, throttled]
    assert queue.repeated == []
    assert scene.dead() == {refused: "sqs:orders: InvalidMessageContents"}
    attempts = dict(scene.ask("SELECT seq, attempts FROM outbox_events"))
    assert attempts == {good: 0, refused: 1, failed: 1, throttled: 0}
    assert facts.count("died") == 1


async def test_a_pack_of_which_nothing_was_the_events_fault_is_an_outage(scene: Scene) -> None:
    calls = Counter[str]()

    def throttled_once(events: list[StoredEvent]) -> list[EntryResult]:
        calls["send"] += 1
        said = Faulted("KmsThrottled", blameless=True) if calls["send"] == 1 else ACCEPTED
        return [said] * len(events)

    queue = FakeDestination(throttled_once)
    scene.insert(["order-1", "order-2"])

    async with scene.relay(queue) as relay:
        await eventually(lambda: not scene.pending())
        assert relay.facts.count("paused") == 1

    assert scene.ask("SELECT sum(attempts) FROM outbox_events") == [(0,)]


async def test_an_event_dies_after_its_last_attempt_and_its_successors_go_on(scene: Scene) -> None:
    def fails_the_first(events: list[StoredEvent]) -> list[EntryResult]:
        return [Faulted("broken") if event.seq == first else ACCEPTED for event in events]

    queue = FakeDestination(fails_the_first)
    first, second = scene.insert(["order-1", "order-1"])

    async with scene.relay(queue, quick(max_attempts=3)):
        await eventually(lambda: queue.seqs == [second])

    assert scene.dead() == {first: "given up after 3 attempts; sqs:orders: broken"}


async def test_an_oversize_event_dies_alone(scene: Scene) -> None:
    queue = FakeDestination(limits=PackLimits(entries=10, pack_bytes=500, entry_bytes=300))
    (large,) = scene.insert(["order-1"], payload=f'"{"x" * 400}"')
    others = scene.insert([f"order-{n}" for n in range(2, 12)])

    async with scene.relay(queue):
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == others
    assert scene.dead() == {large: "sqs:orders: 402 bytes are above 300"}


async def test_a_refused_pack_is_halved_until_the_culprit_is_alone(scene: Scene) -> None:
    def refuses_with_order_7(events: list[StoredEvent]) -> list[EntryResult]:
        if any(event.aggregate_id == "order-7" for event in events):
            raise PackRefused("BatchRequestTooLong")
        return [ACCEPTED] * len(events)

    queue = FakeDestination(refuses_with_order_7)
    seqs = scene.insert([f"order-{n}" for n in range(10)])

    async with scene.relay(queue):
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == [seq for seq in seqs if seq != seqs[7]]
    assert scene.dead() == {seqs[7]: "sqs:orders: BatchRequestTooLong"}
    assert scene.ask("SELECT sum(attempts) FROM outbox_events WHERE dead_at IS NULL") == [(0,)]


async def test_events_without_a_route_are_held_and_block_nobody_else(scene: Scene) -> None:
    queue = FakeDestination()
    # More of them in each bucket than one read returns.
    held = scene.insert([f"lead-{n}" for n in range(3000)], event_type="lead.created")
    behind = scene.insert(["lead-1"])
    others = scene.insert([f"order-{n}" for n in range(200)])

    async with scene.relay(queue) as relay:
        await eventually(lambda: sorted(queue.seqs) == others)
        await eventually(lambda: relay.facts.last("measured")[1]["unrouted"] == 3000)
        before = relay.outbox.reads
        await anyio.sleep(0.3)
        assert relay.outbox.reads - before < 20

    assert scene.pending() == held + behind


@pytest.mark.parametrize("policy", ["dead", "drop"])
async def test_events_without_a_route_can_be_buried_or_dropped(scene: Scene, policy: str) -> None:
    queue = FakeDestination()
    unrouted = scene.insert(["order-1"] * 30, event_type="lead.created")
    (routed,) = scene.insert(["order-1"])

    async with scene.relay(queue, quick(on_unrouted=policy)):
        await eventually(lambda: not scene.pending())

    assert queue.seqs == [routed]
    assert sorted(scene.dead()) == (unrouted if policy == "dead" else [])
    assert all("no route matches" in error for error in scene.dead().values())


TWO_WAYS = (RouteSettings(events="order.*", to=("sqs:orders", "sqs:audit")),)


async def test_partial_success_over_two_destinations_is_remembered(scene: Scene) -> None:
    failing = threading.Event()
    failing.set()
    orders = FakeDestination()
    audit = FakeDestination(
        lambda events: [Faulted("no") if failing.is_set() else ACCEPTED] * len(events)
    )
    first, second = scene.insert(["order-1", "order-1"])

    async with scene.relay({"sqs:orders": orders, "sqs:audit": audit}, quick(routes=TWO_WAYS)):
        await eventually(
            lambda: (
                scene.ask(
                    "SELECT delivered_to, attempts > 1 FROM outbox_events WHERE seq = %s", first
                )
                == [(["sqs:orders"], True)]
            )
        )
        assert orders.seqs == [first]
        failing.clear()
        await eventually(lambda: not scene.pending())

    assert orders.seqs == audit.seqs == [first, second]


async def test_a_new_owner_honours_the_time_of_the_next_attempt(scene: Scene) -> None:
    queue = FakeDestination()
    waiting, behind, other = scene.insert(["order-1", "order-1", "order-2"])
    postpone(scene, waiting, "1 hour")

    async with scene.relay(queue) as relay:
        await eventually(lambda: scene.pending() == [waiting, behind])
        before = relay.outbox.reads
        await eventually(lambda: relay.outbox.reads > before + 3)
    assert queue.seqs == [other]

    postpone(scene, waiting, "0.5 s")
    async with scene.relay(queue):
        await eventually(lambda: not scene.pending())

    assert queue.seqs == [other, waiting, behind]
    (early,) = scene.ask(
        "SELECT published_at < next_attempt_at FROM outbox_events WHERE seq = %s", waiting
    )
    assert early == (False,)


def postpone(scene: Scene, seq: int, interval: str) -> None:
    scene.run(
        "UPDATE outbox_events SET attempts = 3,"
        " next_attempt_at = clock_timestamp() + %s::interval WHERE seq = %s",
        interval,
        seq,
    )


async def test_a_destination_that_hangs_does_not_stop_the_other(scene: Scene) -> None:
    gate = Gate()

    def hangs(events: list[StoredEvent]) -> list[EntryResult]:
        gate.pass_through()
        return [ACCEPTED] * len(events)

    routes = (
        RouteSettings(events="order.*", to=("sqs:orders",)),
        RouteSettings(events="lead.*", to=("sqs:leads",)),
    )
    orders, leads = FakeDestination(hangs), FakeDestination()
    scene.insert([f"order-{n}" for n in range(100)])

    async with scene.relay({"sqs:orders": orders, "sqs:leads": leads}, quick(routes=routes)):
        await eventually(lambda: gate.waiting > 0)
        seqs = scene.insert([f"lead-{n}" for n in range(100)], event_type="lead.created")
        await eventually(lambda: sorted(leads.seqs) == seqs)
        gate.open()
        await eventually(lambda: not scene.pending())


async def test_a_route_to_an_unknown_destination_is_a_settings_error(scene: Scene) -> None:
    with pytest.raises(SettingsError, match="sqs:orders"):
        async with scene.relay({}):
            pass


async def test_a_call_that_could_outlast_every_lease_is_a_settings_error(scene: Scene) -> None:
    with pytest.raises(SettingsError, match="nothing would be sent"):
        async with scene.relay(FakeDestination(call_seconds=2.9)):
            pass


async def test_without_an_order_an_aggregates_events_fly_together_and_none_waits_for_another(
    scene: Scene,
) -> None:
    failing = threading.Event()
    failing.set()

    def fails_the_first(events: list[StoredEvent]) -> list[EntryResult]:
        bad = failing.is_set()
        return [Faulted("no") if bad and event.seq == seqs[0] else ACCEPTED for event in events]

    queue = FakeDestination(fails_the_first)
    seqs = scene.insert(["order-1"] * 200)
    routes = (RouteSettings(events="order.*", to=("sqs:orders",), ordering="none"),)

    async with scene.relay(queue, quick(routes=routes)):
        await eventually(lambda: sorted(queue.seqs) == seqs[1:])
        await eventually(lambda: scene.pending() == seqs[:1])
        more = scene.insert(["order-1"] * 20)
        await eventually(lambda: sorted(queue.seqs) == seqs[1:] + more)
        failing.clear()
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs + more
    assert sum(len(pack) == 10 for pack in queue.packs) >= 15


async def test_events_without_an_order_keep_those_with_one_in_theirs(scene: Scene) -> None:
    seen = Counter[int]()

    def fails_every_third_first_try(events: list[StoredEvent]) -> list[EntryResult]:
        seen.update(event.seq for event in events)
        return [
            Faulted("InternalError") if event.seq % 3 == 0 and seen[event.seq] == 1 else ACCEPTED
            for event in events
        ]

    orders = FakeDestination(fails_every_third_first_try)
    views = FakeDestination(fails_every_third_first_try)
    routes = (
        RouteSettings(events="order.*", to=("sqs:orders",)),
        RouteSettings(events="seen", to=("sqs:views",), ordering="none"),
    )
    in_order, unordered = [], []
    for _ in range(10):
        in_order += scene.insert([f"order-{n % 5}" for n in range(10)])
        unordered += scene.insert([f"order-{n % 5}" for n in range(10)], event_type="seen")

    async with scene.relay({"sqs:orders": orders, "sqs:views": views}, quick(routes=routes)):
        await eventually(lambda: not scene.pending())

    assert sorted(orders.seqs) == in_order
    assert sorted(views.seqs) == unordered
    assert orders.inversions == []


BLOCKING = (RouteSettings(events="order.*", to=("sqs:orders",), on_exhausted="block"),)


@pytest.mark.parametrize("fate", [Faulted("broken"), Refused("InvalidMessageContents")])
async def test_an_exhausted_event_that_blocks_holds_up_its_aggregate_until_it_is_requeued(
    scene: Scene, fate: EntryResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_SECONDS", 0.1)
    failing = threading.Event()
    failing.set()

    def fails_the_first(events: list[StoredEvent]) -> list[EntryResult]:
        bad = failing.is_set()
        return [fate if bad and event.seq == first else ACCEPTED for event in events]

    queue = FakeDestination(fails_the_first)
    first, second, other = scene.insert(["order-1", "order-1", "order-2"])
    blocked = "SELECT seq FROM outbox_events WHERE next_attempt_at = 'infinity'"

    async with scene.relay(queue, quick(routes=BLOCKING, max_attempts=3)) as relay:
        await eventually(lambda: scene.ask(blocked) == [(first,)])
        await eventually(lambda: scene.pending() == [first, second])
        await eventually(lambda: relay.facts.last("measured")[1]["blocked"] == 1)
    assert queue.seqs == [other]
    assert scene.dead() == {}

    # Any later owner sees the block in the row itself.
    calls = len(queue.packs)
    async with scene.relay(queue, quick(routes=BLOCKING, max_attempts=3)) as relay:
        await eventually(lambda: relay.outbox.reads > 10)
        assert len(queue.packs) == calls
        failing.clear()
        scene.run(
            "UPDATE outbox_events SET attempts = 0, next_attempt_at = NULL WHERE seq = %s", first
        )
        await eventually(lambda: not scene.pending())

    assert queue.seqs == [other, first, second]


async def test_a_blocking_event_that_is_discarded_frees_its_aggregate(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_SECONDS", 0.1)
    queue = FakeDestination(limits=PackLimits(entries=10, pack_bytes=500, entry_bytes=300))
    (large,) = scene.insert(["order-1"], payload=f'"{"x" * 400}"')
    (behind,) = scene.insert(["order-1"])

    async with scene.relay(queue, quick(routes=BLOCKING)):
        await eventually(
            lambda: scene.ask("SELECT attempts FROM outbox_events WHERE seq = %s", large) == [(1,)]
        )
        assert scene.pending() == [large, behind]
        scene.run("UPDATE outbox_events SET dead_at = now() WHERE seq = %s", large)
        await eventually(lambda: not scene.pending())

    assert queue.seqs == [behind]


async def test_an_event_that_was_inserted_long_before_its_commit_leaves_right_after_it(
    scene: Scene,
) -> None:
    """Others with higher numbers are published meanwhile: whoever remembers how far it has read
    loses this one, or finds it after its successors."""
    queue = FakeDestination()

    async with scene.relay(queue):
        with scene.connection() as connection:
            with connection.transaction():
                connection.execute(
                    "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload)"
                    " VALUES ('order.placed', 'order', 'late', '1')"
                )
                for _ in range(20):
                    before = len(queue.seqs)
                    scene.insert([f"order-{n}" for n in range(50)])
                    await eventually(lambda: len(queue.seqs) == before + 50)  # noqa: B023
            committed_at = time.monotonic()
            await eventually(lambda: len(queue.seqs) == 1001)
            assert time.monotonic() - committed_at < 1.0

    assert queue.accepted[-1].aggregate_id == "late"
    assert queue.seqs[-1] == min(queue.seqs)
