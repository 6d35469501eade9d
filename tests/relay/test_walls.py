"""Events that wait in large numbers, and must not be passed over again by each read."""

from collections.abc import Mapping

import anyio
import pytest

from outboxd.actors.relay import dispatch
from outboxd.core import horizon, windows
from outboxd.core.windows import Window
from tests.relay.scene import FakeDestination, Scene, eventually, quick

WALL = 3000


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read is slow, and nothing needs more than a moment."""
    monkeypatch.setattr(windows, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(horizon, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(horizon, "SAMPLE_SECONDS", 0.02)
    monkeypatch.setattr(windows, "RESCAN_SECONDS", 3600.0)


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
    monkeypatch.setattr(windows, "RESCAN_SECONDS", 0.5)
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
        relay.outbox.takes_too_long = lambda _, per_bucket: per_bucket > 8
        await eventually(lambda: sorted(queue.seqs) == behind)
        assert max(relay.outbox.page_sizes) > 8


async def test_reads_that_passed_over_a_lane_look_there_again_as_soon_as_its_time_comes(
    scene: Scene,
) -> None:
    queue = FakeDestination()
    wall = scene.insert(["wall"] * WALL)
    scene.run(
        "UPDATE outbox_events SET next_attempt_at = now() + interval '2 s' WHERE seq = %s", wall[0]
    )
    bucket = bucket_of_wall(scene)
    # It stays parked: as long as something is, reads do not begin at the first row by themselves.
    scene.run(STONE, "stone")

    async with scene.relay(queue) as relay:
        await eventually(lambda: relay.outbox.starts.get(bucket, 0) >= wall[-1])
        assert queue.seqs == []
        await eventually(lambda: queue.seqs == wall)

    assert queue.repeated == []


async def test_a_wall_too_long_for_one_statement_is_passed_in_windows(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read used to be cut off for ever, and with it those of all other buckets."""
    monkeypatch.setattr(windows, "FIRST_WINDOW", 100)
    monkeypatch.setattr(windows, "SMALLEST_WINDOW", 100)
    queue = FakeDestination()
    wall = build_wall(scene)
    bucket = bucket_of_wall(scene)

    def passes_too_many(asked: Mapping[int, Window], per_bucket: int) -> bool:
        window = asked.get(bucket)
        # Until the first event is known to wait, a page of the wall is found at once.
        return window is not None and relay.outbox.reads > 1 and passed(window) > 500

    def passed(window: Window) -> int:
        return sum(1 for seq in wall if window.after < seq <= window.up_to)

    async with scene.relay(queue) as relay:
        relay.outbox.takes_too_long = passes_too_many
        await eventually(lambda: relay.outbox.cut_off > 0)
        behind = scene.insert(neighbours(scene, 50))
        elsewhere = scene.insert([f"order-{n}" for n in range(100)])
        await eventually(lambda: sorted(queue.seqs) == behind + elsewhere)
        relay.outbox.takes_too_long = lambda *_: False
        scene.run("UPDATE outbox_events SET next_attempt_at = NULL WHERE seq = %s", wall[0])


async def test_a_bucket_that_cannot_be_read_keeps_no_other_one_waiting(scene: Scene) -> None:
    queue = FakeDestination()
    (stuck,) = scene.insert(["wall"])
    bucket = bucket_of_wall(scene)

    async with scene.relay(queue) as relay:
        relay.outbox.takes_too_long = lambda asked, _: bucket in asked
        others = scene.insert([f"order-{n}" for n in range(1000)])
        with scene.connection() as connection:
            rows = connection.execute(
                "SELECT seq FROM outbox_events WHERE seq = ANY (%s) AND"
                " hashtextextended(aggregate_type || chr(31) || aggregate_id, 0) & 63 <> %s",
                (others, bucket),
            ).fetchall()
        await eventually(lambda: sorted(queue.seqs) == sorted(seq for (seq,) in rows))
        assert stuck not in queue.seqs
