"""Events that wait in large numbers, and must not be passed over again by each read."""

import anyio
import pytest

from outboxd.actors.relay import dispatch
from outboxd.core import horizon
from tests.relay.scene import FakeDestination, Scene, eventually, quick

WALL = 3000


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read is slow, and nothing needs more than a moment."""
    monkeypatch.setattr(horizon, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(horizon, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(horizon, "SAMPLE_SECONDS", 0.02)
    monkeypatch.setattr(horizon, "RESCAN_SECONDS", 3600.0)


STONE = (
    "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload, next_attempt_at)"
    " VALUES ('order.placed', 'order', %s, '1', 'infinity')"
)


def build_wall(scene: Scene) -> list[int]:
    seqs = scene.insert(["wall"] * WALL)
    block(scene, seqs[0])
    return seqs


def block(scene: Scene, seq: int) -> None:
    scene.run("UPDATE outbox_events SET next_attempt_at = 'infinity' WHERE seq = %s", seq)


def bucket_of_wall(scene: Scene) -> int:
    ((bucket,),) = scene.ask("SELECT hashtextextended('order' || chr(31) || 'wall', 0) & 63")
    return int(bucket)


def neighbours(scene: Scene, count: int) -> list[str]:
    """Aggregates in the bucket of the wall."""
    rows = scene.ask(
        "SELECT n::text FROM generate_series(1, 100000) n"
        " WHERE hashtextextended('order' || chr(31) || n::text, 0) & 63 = %s LIMIT %s",
        bucket_of_wall(scene),
        count,
    )
    return [name for (name,) in rows]


async def test_reads_begin_behind_a_blocked_aggregate_and_find_it_again_when_it_is_unblocked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "LOOK_AGAIN_SECONDS", 2.0)
    queue = FakeDestination()
    wall = build_wall(scene)
    bucket, beside = bucket_of_wall(scene), neighbours(scene, 50)
    published = scene.insert(beside)

    async with scene.relay(queue) as relay:
        await eventually(lambda: relay.outbox.starts.get(bucket, 0) >= wall[-1])
        # Two that stay, and are looked at in turn: reads go on beginning later for them.
        for name in ("stone-1", "stone-2"):
            scene.run(STONE, name)
            await anyio.sleep(0.7)
        published += scene.insert(beside)
        await eventually(lambda: sorted(queue.seqs) == published)
        scene.run("UPDATE outbox_events SET next_attempt_at = NULL WHERE seq = %s", wall[0])
        await eventually(lambda: len(scene.pending()) == 2)

    assert [event.seq for event in queue.accepted if event.aggregate_id == "wall"] == wall
    assert queue.repeated == []
    assert queue.inversions == []


async def test_a_row_that_is_pending_again_behind_the_start_is_found_in_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(horizon, "RESCAN_SECONDS", 0.5)
    queue = FakeDestination()
    (dead,) = scene.insert(neighbours(scene, 1))
    scene.run("UPDATE outbox_events SET dead_at = now() WHERE seq = %s", dead)
    wall = build_wall(scene)
    bucket = bucket_of_wall(scene)

    async with scene.relay(queue) as relay:
        await eventually(lambda: relay.outbox.starts.get(bucket, 0) >= wall[-1])
        scene.run("UPDATE outbox_events SET dead_at = NULL WHERE seq = %s", dead)
        await eventually(lambda: queue.seqs == [dead])


async def test_an_open_transaction_holds_the_start_back_and_its_events_are_found(
    scene: Scene,
) -> None:
    queue = FakeDestination()
    wall = build_wall(scene)
    bucket = bucket_of_wall(scene)
    late, other = neighbours(scene, 2)

    async with scene.relay(queue) as relay:
        await eventually(lambda: relay.outbox.starts.get(bucket, 0) >= wall[-1])
        with scene.connection() as connection:
            with connection.transaction():
                connection.execute(
                    "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload)"
                    " VALUES ('order.placed', 'order', %s, '1')",
                    (late,),
                )
                for _ in range(10):
                    before = len(queue.seqs)
                    scene.insert([other] * 5)
                    await eventually(lambda: len(queue.seqs) == before + 5)  # noqa: B023
                    await anyio.sleep(0.05)
                assert relay.outbox.starts[bucket] == wall[-1]
            await eventually(lambda: len(queue.seqs) == 51)

    assert queue.seqs[-1] == wall[-1] + 1


async def test_a_page_that_takes_too_long_is_asked_for_in_smaller_ones(scene: Scene) -> None:
    """It used to be asked for again and again, and nothing was ever published."""
    queue = FakeDestination()
    scene.insert([f"lead-{n}" for n in range(WALL)], event_type="lead.created")
    behind = scene.insert([f"order-{n}" for n in range(100)])

    async with scene.relay(queue, quick(read_per_bucket=2)) as relay:
        relay.outbox.largest_page = 8
        await eventually(lambda: sorted(queue.seqs) == behind)
        assert max(relay.outbox.page_sizes) > 8
