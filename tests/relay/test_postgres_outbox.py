"""The relay's statements, each on its own."""

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import anyio
import psycopg
import pytest

from outboxd.adapters.postgres import outbox as outbox_module
from outboxd.adapters.postgres.buckets import PostgresBuckets
from outboxd.adapters.postgres.outbox import PostgresOutbox
from outboxd.adapters.postgres.sessions import Sessions, array
from outboxd.adapters.postgres.upkeep import PostgresUpkeep
from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.horizon import Horizon
from outboxd.core.outbox import BUCKETS, DeliveryMark, FailureMark
from outboxd.core.settings import DatabaseSettings
from outboxd.core.windows import EVERYTHING, Window
from outboxd.ports.outbox import MarkRefused, Purged, ReadCutOff, Survey
from tests.relay.scene import Scene, eventually

EVERY_BUCKET = dict.fromkeys(range(BUCKETS), EVERYTHING)
ME = UUID(int=1)


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


@pytest.fixture
async def sessions(database: str) -> AsyncIterator[Sessions]:
    sessions = Sessions(DatabaseSettings(url=database), "test")
    yield sessions
    await sessions.close()


@pytest.fixture
def outbox(sessions: Sessions) -> PostgresOutbox:
    return PostgresOutbox(sessions, "outboxd", keep_published=True)


@pytest.fixture
def buckets(sessions: Sessions) -> PostgresBuckets:
    return PostgresBuckets(sessions, "outboxd")


@pytest.fixture
def upkeep(sessions: Sessions) -> PostgresUpkeep:
    return PostgresUpkeep(sessions, "outboxd")


async def read(outbox: PostgresOutbox, per_bucket: int = 100) -> list[int]:
    return [event.seq for event in await outbox.read(EVERY_BUCKET, per_bucket, "", [])]


async def test_a_read_returns_rows_as_they_are(scene: Scene, outbox: PostgresOutbox) -> None:
    scene.run(
        """
        INSERT INTO outbox_events
               (event_type, aggregate_type, aggregate_id, payload, headers, occurred_at, attempts)
        VALUES ('order.placed', 'order', 'o-1', '{"b": 1, "a": "é"}', '{"traceparent": "00-1"}',
                '2026-02-03 04:05:06.070809+02', 2)
        """
    )

    (event,) = await outbox.read(EVERY_BUCKET, 10, "", [])

    assert event.payload == '{"a": "é", "b": 1}'
    assert event.occurred_at == "2026-02-03T02:05:06.070809Z"
    assert event.traceparent == "00-1"
    assert event.attempts == 2
    assert event.delivered_to is None
    assert event.due_at <= boottime()
    assert UUID(event.id).version == 4


async def test_only_pending_rows_of_the_asked_buckets_are_read_in_order(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    seqs = scene.insert([f"order-{n % 30}" for n in range(300)])
    scene.run("UPDATE outbox_events SET published_at = now() WHERE seq = %s", seqs[3])
    scene.run("UPDATE outbox_events SET dead_at = now() WHERE seq = %s", seqs[5])

    page = await outbox.read(dict.fromkeys(range(0, BUCKETS, 2), EVERYTHING), 1000, "", [])
    others = await outbox.read(dict.fromkeys(range(1, BUCKETS, 2), EVERYTHING), 1000, "", [])

    assert sorted([each.seq for each in (*page, *others)]) == [
        seq for seq in seqs if seq not in (seqs[3], seqs[5])
    ]
    assert [each.seq for each in page] == sorted(each.seq for each in page)
    assert {each.bucket % 2 for each in page} == {0}


async def test_what_is_in_hand_is_left_out(scene: Scene, outbox: PostgresOutbox) -> None:
    first, second, third = scene.insert(["order-1", "order-1", "order-2"])
    key = (await outbox.read(EVERY_BUCKET, 1, "", []))[0].key

    without_key = await outbox.read(EVERY_BUCKET, 10, f"{key},5", [])
    without_row = await outbox.read(EVERY_BUCKET, 10, "", [first])

    assert [each.seq for each in without_key] == [third]
    assert [each.seq for each in without_row] == [second, third]


async def test_a_page_of_large_events_is_short_but_never_empty(
    scene: Scene, outbox: PostgresOutbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "READ_BYTES_PER_BUCKET", 1000)
    # What cannot be compressed, so that its size is what it looks like.
    noise = "(SELECT string_agg(md5(n::text || %s), '') FROM generate_series(1, 20) n)"
    for number in range(6):
        scene.run(
            "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload)"
            f" VALUES ('order.placed', 'order', '1', to_jsonb({noise}))",
            str(number),
        )

    assert len(await read(outbox)) == 2


async def test_an_odd_row_does_not_spoil_the_read_of_its_neighbours(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    good, odd, odder = scene.insert(["order-1", "order-2", "order-3"])
    scene.run("UPDATE outbox_events SET occurred_at = 'infinity' WHERE seq = %s", odd)
    scene.run(
        "UPDATE outbox_events SET next_attempt_at = 'infinity', occurred_at = '-infinity',"
        " headers = '{\"traceparent\": {}}', delivered_to = ARRAY[NULL]::text[] WHERE seq = %s",
        odder,
    )

    assert await read(outbox) == [good, odd, odder]


async def test_a_window_begins_after_one_row_and_ends_with_another(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    seqs = scene.insert(["order-1"] * 6)
    bucket = (await outbox.read(EVERY_BUCKET, 1, "", []))[0].bucket

    page = await outbox.read({bucket: Window(seqs[1], seqs[4])}, 10, "", [])

    assert [each.seq for each in page] == seqs[2:5]


async def test_a_read_that_is_cut_off_says_so_and_keeps_its_connection(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    (seq,) = scene.insert(["order-1"])
    assert await read(outbox) == [seq]
    own = "SELECT pid FROM pg_stat_activity WHERE application_name = 'test'"
    ((pid,),) = scene.ask(own)

    async def cut_off() -> None:
        with pytest.raises(ReadCutOff):
            await read(outbox)

    with scene.connection() as holder, holder.transaction():
        holder.execute("LOCK TABLE outbox_events")
        async with anyio.create_task_group() as reading:
            reading.start_soon(cut_off)
            await eventually(lambda: scene.ask(own + " AND wait_event_type = 'Lock'"))
            scene.run("SELECT pg_cancel_backend(%s)", pid)

    assert await read(outbox) == [seq]
    assert scene.ask(own) == [(pid,)]


@pytest.mark.parametrize("query", [outbox_module.READ, outbox_module.READ_WINDOWS])
async def test_the_index_serves_a_read_whatever_is_left_out(scene: Scene, query: str) -> None:
    scene.run(
        "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload)"
        " SELECT 'order.placed', 'order', (n %% 3000)::text, '1' FROM generate_series(1, 30000) n"
    )
    scene.run("ANALYZE outbox_events")
    parameters = {
        "buckets": array(EVERY_BUCKET),
        "after": array(window.after for window in EVERY_BUCKET.values()),
        "up_to": array(window.up_to for window in EVERY_BUCKET.values()),
        "per_bucket": 20,
        "excluded_keys": array(list(range(5000))),
        "excluded_seqs": array(list(range(500))),
        "bytes": 1_000_000,
        "now": 0.0,
    }

    with psycopg.connect(scene.dsn, cursor_factory=psycopg.ClientCursor) as connection:
        explain = "EXPLAIN " + query.format(schema="outboxd")
        plan = "\n".join(
            line for (line,) in connection.execute(explain.encode(), parameters).fetchall()
        )

    assert "Index Scan using outbox_events_pending" in plan
    assert "Sort" not in plan


async def test_a_published_mark_is_a_fact_that_needs_no_owner(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    seqs = scene.insert(["order-1", "order-2", "order-3"])
    scene.run("UPDATE outbox_events SET published_at = now() WHERE seq = %s", seqs[1])

    assert await outbox.mark_published(seqs[:2]) == frozenset()
    assert scene.pending() == [seqs[2]]


async def test_a_mark_says_which_rows_it_did_not_change(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    first, second = scene.insert(["order-1", "order-2"])
    scene.run(
        f"CREATE RULE nothing AS ON UPDATE TO outbox_events WHERE OLD.seq = {second}"
        " DO INSTEAD NOTHING"
    )

    assert await outbox.mark_published([first, second]) == {second}


async def test_deleted_rows_are_gone(scene: Scene, sessions: Sessions) -> None:
    outbox = PostgresOutbox(sessions, "outboxd", keep_published=False)
    seqs = scene.insert(["order-1", "order-2"])

    assert await outbox.mark_published(seqs[:1]) == frozenset()
    assert scene.ask("SELECT seq FROM outbox_events") == [(seqs[1],)]
    assert await outbox.mark_published(seqs[:1]) == frozenset()


async def test_failures_are_recorded_under_the_right_epoch_only(
    scene: Scene, outbox: PostgresOutbox, buckets: PostgresBuckets
) -> None:
    epochs = await buckets.claim(ME, BUCKETS, 30.0)
    seqs = scene.insert(["order-1", "order-2", "order-3"])
    events = await outbox.read(EVERY_BUCKET, 10, "", [])
    epoch_offsets = (0, -1, 0)
    marks = [
        FailureMark(
            each.seq,
            each.bucket,
            epochs[each.bucket] + offset,
            4,
            60.0,
            "no",
            dead=each is events[2],
        )
        for each, offset in zip(events, epoch_offsets, strict=True)
    ]

    await outbox.mark_failed(ME, marks)
    await outbox.mark_failed(uuid4(), marks[1:2])

    assert scene.ask(
        "SELECT seq, attempts, last_error, dead_at IS NOT NULL,"
        " next_attempt_at > clock_timestamp() + interval '50 s' FROM outbox_events ORDER BY seq"
    ) == [
        (seqs[0], 4, "no", False, True),
        (seqs[1], 0, None, False, None),
        (seqs[2], 4, "no", True, True),
    ]


async def test_deliveries_add_up(scene: Scene, outbox: PostgresOutbox) -> None:
    first, second = scene.insert(["order-1", "order-2"])

    await outbox.mark_delivered([DeliveryMark(first, ("b", "a")), DeliveryMark(second, ("c",))])
    await outbox.mark_delivered([DeliveryMark(first, ("b", "d"))])

    assert scene.ask("SELECT delivered_to FROM outbox_events ORDER BY seq") == [
        (["a", "b", "d"],),
        (["c"],),
    ]


async def test_a_locked_row_refuses_the_batch(scene: Scene, outbox: PostgresOutbox) -> None:
    seqs = scene.insert(["order-1", "order-2"])

    with scene.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM outbox_events WHERE seq = %s FOR UPDATE", (seqs[0],))
        with pytest.raises(MarkRefused):
            await outbox.mark_published(seqs)

    assert scene.pending() == seqs


async def test_buckets_are_claimed_renewed_and_released_by_their_owner(
    scene: Scene, buckets: PostgresBuckets
) -> None:
    other = uuid4()
    mine = await buckets.claim(ME, 40, 30.0)
    theirs = await buckets.claim(other, 40, 30.0)

    assert len(mine) == 40
    assert len(theirs) == 24
    assert not mine.keys() & theirs.keys()
    renewal = await buckets.renew(ME, 30.0)
    assert renewal.epochs == mine
    assert renewal.live_relays == 1
    assert (await buckets.renew(other, 30.0)).live_relays == 2
    one = next(iter(mine))
    await buckets.release(other, {one: mine[one]})
    await buckets.release(ME, {one: mine[one] + 1})
    assert scene.owned() == {ME: 40, other: 24}
    await buckets.release(ME, mine)
    assert scene.owned() == {other: 24}
    await buckets.leave(other)
    assert (await buckets.renew(ME, 30.0)).live_relays == 1


async def test_a_lease_that_has_run_out_is_not_renewed_but_claimed_by_anyone(
    scene: Scene, buckets: PostgresBuckets
) -> None:
    mine = await buckets.claim(ME, BUCKETS, 30.0)
    scene.run("UPDATE outbox_buckets SET lease_until = clock_timestamp()")

    assert (await buckets.renew(ME, 30.0)).epochs == {}
    theirs = await buckets.claim(uuid4(), BUCKETS, 30.0)
    assert theirs == {bucket: epoch + 1 for bucket, epoch in mine.items()}


async def test_a_survey_counts_what_is_pending_and_dead(
    scene: Scene, upkeep: PostgresUpkeep
) -> None:
    assert await upkeep.survey() == Survey(0, 0.0, 0)
    seqs = scene.insert([f"order-{n}" for n in range(10)])
    scene.run("UPDATE outbox_events SET dead_at = now() WHERE seq = %s", seqs[0])
    scene.run(
        "UPDATE outbox_events SET occurred_at = clock_timestamp() - interval '1 h' WHERE seq = %s",
        seqs[4],
    )

    survey = await upkeep.survey()

    assert (survey.pending, survey.dead) == (9, 1)
    assert 3600 <= survey.oldest_pending_seconds < 3700


async def test_a_purge_deletes_old_published_rows_step_by_step(
    scene: Scene, upkeep: PostgresUpkeep
) -> None:
    seqs = scene.insert([f"order-{n}" for n in range(10)])
    scene.run(
        "UPDATE outbox_events SET published_at = now() - interval '2 days',"
        " occurred_at = now() - interval '2 days' WHERE seq <> ALL (%s)",
        [seqs[2], seqs[9]],
    )
    scene.run(
        "UPDATE outbox_events SET dead_at = now(), published_at = NULL WHERE seq = %s", seqs[4]
    )

    first = await upkeep.purge(86_400.0, 0, 6)
    second = await upkeep.purge(86_400.0, first.last_seq, 6)

    assert first == Purged(seqs[5], 4, finished=True)  # seqs[2] is young: all beyond are as well
    assert second == Purged(seqs[9], 3, finished=True)
    assert [seq for (seq,) in scene.ask("SELECT seq FROM outbox_events ORDER BY seq")] == [
        seqs[2],
        seqs[4],
        seqs[9],
    ]


async def test_silent_relays_are_forgotten(
    scene: Scene, upkeep: PostgresUpkeep, buckets: PostgresBuckets
) -> None:
    await buckets.renew(ME, 30.0)
    scene.run(
        "INSERT INTO outbox_relays (id, host, pid, seen)"
        " VALUES (gen_random_uuid(), 'x', 1, now() - interval '2 h')"
    )

    await upkeep.forget_relays(3600.0)

    assert scene.ask("SELECT id FROM outbox_relays") == [(ME,)]


async def test_a_missing_schema_is_an_outage_and_not_a_crash(
    scene: Scene, sessions: Sessions
) -> None:
    elsewhere = PostgresOutbox(sessions, "elsewhere", keep_published=True)

    with pytest.raises(Unavailable) as caught:
        await elsewhere.read(EVERY_BUCKET, 10, "", [])

    assert caught.value.kind is OutageKind.MISSING


async def test_an_ended_connection_is_replaced(scene: Scene, outbox: PostgresOutbox) -> None:
    seqs = scene.insert(["order-1"])
    assert await read(outbox) == seqs
    scene.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'test'"
    )

    with pytest.raises(Unavailable):
        await read(outbox)
    assert await read(outbox) == seqs


async def test_a_read_begins_after_the_start_of_each_bucket(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    seqs = scene.insert([f"order-{n}" for n in range(200)])
    middle = seqs[100]
    half = {bucket: Window(middle) if bucket % 2 else EVERYTHING for bucket in range(BUCKETS)}

    page = await outbox.read(half, 1000, "", [])

    everything = await outbox.read(EVERY_BUCKET, 1000, "", [])
    assert [event.seq for event in page] == [
        event.seq for event in everything if event.bucket % 2 == 0 or event.seq > middle
    ]


async def test_a_sample_tells_the_last_row_and_what_is_open(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    assert (await outbox.sample()).last_seq == 0
    scene.insert(["order-1"])
    with scene.connection() as connection, connection.transaction():
        ((mine,),) = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchall()
        (last,) = scene.insert(["order-2"])

        sample = await outbox.sample()

        assert sample.last_seq == last
        assert sample.oldest_open <= mine < sample.next_id
    assert (await outbox.sample()).oldest_open > mine


async def test_a_transaction_that_began_last_and_stays_open_holds_the_horizon_back(
    scene: Scene, outbox: PostgresOutbox
) -> None:
    """The snapshot's upper bound was taken for the next id, which this transaction has already."""
    insert = (
        "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload)"
        " VALUES ('order.placed', 'order', %s, '1') RETURNING seq"
    )
    horizon = Horizon()
    with scene.connection() as first, scene.connection() as staying, staying.transaction():
        with first.transaction():
            first.execute(insert, ("order-1",))
            ((open_seq,),) = staying.execute(insert, ("order-2",)).fetchall()
            first.execute(insert, ("order-1",))
        horizon.sampled(await outbox.sample(), 0.0)
        scene.insert(["order-3"])
        horizon.sampled(await outbox.sample(), 10.0)
        assert horizon.seq < open_seq

    horizon.sampled(await outbox.sample(), 20.0)
    assert horizon.seq > open_seq
