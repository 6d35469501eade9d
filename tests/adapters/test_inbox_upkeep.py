"""The inbox is purged in steps, by one process at a time, and knows when queues stood still."""

from collections.abc import AsyncIterator

import boto3
import psycopg
import pytest

from outboxd.adapters.postgres.inbox_upkeep import PURGE_MARKS, PostgresInboxUpkeep
from outboxd.adapters.postgres.sessions import Sessions, statement
from outboxd.adapters.sqs.retention import SqsQueueLife
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.inbox_retention import FORGOTTEN_SECONDS, OUTAGE_SECONDS, purge_before
from outboxd.core.settings import (
    AwsSettings,
    DatabaseSettings,
    HandlerSettings,
    QueueSettings,
    Settings,
)
from outboxd.testing import LocalAws
from outboxd.testing.fixtures import aws as aws  # a fixture is found by its name here
from tests.relay.scene import Scene


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


@pytest.fixture
async def upkeep(database: str) -> AsyncIterator[PostgresInboxUpkeep]:
    sessions = Sessions(DatabaseSettings(url=database), "test")
    yield PostgresInboxUpkeep(sessions, "outboxd")
    await sessions.close()


def mark(scene: Scene, age: str, count: int = 1) -> None:
    scene.run(
        "INSERT INTO processed_events (event_id, handler, processed_at)"
        " SELECT gen_random_uuid(), 'h', now() - %s::interval FROM generate_series(1, %s)",
        age,
        count,
    )


def marks(scene: Scene) -> int:
    return int(scene.ask("SELECT count(*) FROM processed_events")[0][0])


async def test_marks_of_a_time_are_deleted_step_by_step(
    scene: Scene, upkeep: PostgresInboxUpkeep
) -> None:
    mark(scene, "3 days", 5)
    mark(scene, "1 day", 2)
    now = (await upkeep.polls()).now
    two_days_ago = now - 2 * 86_400

    assert await upkeep.purge_marks(now - 86_400 * 2.5, two_days_ago, 10) == 0
    steps = [await upkeep.purge_marks(0.0, two_days_ago, 2) for _ in range(4)]

    assert steps == [2, 2, 1, 0]
    assert marks(scene) == 2


async def test_only_failures_that_are_old_go(scene: Scene, upkeep: PostgresInboxUpkeep) -> None:
    scene.run(
        "INSERT INTO handler_failures (event_id, handler, message_id, last_failed_at, dead_at)"
        " SELECT gen_random_uuid(), 'h', 'm', now() - n * interval '1 day', now()"
        " FROM generate_series(1, 6) n"
    )
    now = (await upkeep.polls()).now

    steps = [await upkeep.purge_failures(now - 2.5 * 86_400, 3) for _ in range(3)]

    assert steps == [3, 1, 0]


async def test_one_process_purges_at_a_time(
    scene: Scene, database: str, upkeep: PostgresInboxUpkeep
) -> None:
    mark(scene, "3 days", 3)
    now = (await upkeep.polls()).now
    with psycopg.connect(database) as other:
        query = statement(PURGE_MARKS, "outboxd")
        other.execute(
            query, {"lock": "outboxd inbox outboxd", "since": 0.0, "before": now, "limit": 1}
        )

        assert await upkeep.purge_marks(0.0, now, 10) is None
        assert await upkeep.purge_failures(now, 10) is None
        other.commit()

    assert await upkeep.purge_marks(0.0, now, 10) == 2


async def test_an_outage_is_written_down_once_and_keeps_marks_for_longer(
    scene: Scene, upkeep: PostgresInboxUpkeep
) -> None:
    await upkeep.polled("orders", 100.0)
    scene.run("UPDATE inbox_polls SET polled_at = now() - interval '2 days'")
    down = await upkeep.polls()

    await upkeep.polled("orders", None)
    await upkeep.polled("orders", None)

    back = await upkeep.polls()
    ((gap,),) = [poll.gaps for poll in back.polls]
    assert gap.ended_at - gap.started_at == pytest.approx(2 * 86_400, abs=60)
    assert back.polls[0].lasting_seconds == 100.0
    for state in (down, back):
        before = purge_before(state.now, 5 * 86_400, state.polls)
        assert state.now - before == pytest.approx(7 * 86_400, abs=60)


async def test_a_restart_is_no_outage(scene: Scene, upkeep: PostgresInboxUpkeep) -> None:
    await upkeep.polled("orders", None)
    scene.run(
        "UPDATE inbox_polls SET polled_at = now() - %s * interval '1 second'", OUTAGE_SECONDS - 60
    )

    await upkeep.polled("orders", None)

    assert (await upkeep.polls()).polls[0].gaps == []


async def test_gaps_that_no_longer_matter_and_queues_that_are_gone_are_forgotten(
    scene: Scene, upkeep: PostgresInboxUpkeep
) -> None:
    for queue in ("orders", "gone"):
        await upkeep.polled(queue, None)
        scene.run(
            "INSERT INTO inbox_gaps SELECT %s, now() - n * interval '2 days',"
            " now() - n * interval '2 days' + interval '1 day' FROM generate_series(1, 3) n",
            queue,
        )
    scene.run(
        "UPDATE inbox_polls SET polled_at = now() - %s * interval '1 second' WHERE queue = 'gone'",
        FORGOTTEN_SECONDS + 60,
    )
    now = (await upkeep.polls()).now

    await upkeep.forget_gaps(now - 2.5 * 86_400)

    assert scene.ask("SELECT queue FROM inbox_polls") == [("orders",)]
    assert scene.ask("SELECT queue FROM inbox_gaps") == [("orders",)]


async def test_a_step_looks_only_at_the_blocks_of_its_time(
    scene: Scene, upkeep: PostgresInboxUpkeep
) -> None:
    """Without it each step would look at all rows, and a large inbox never be done."""
    for day in range(20, 0, -1):
        mark(scene, f"{day} days", 5_000)
    scene.run("VACUUM ANALYZE processed_events")
    now = (await upkeep.polls()).now
    plan = scene.ask(
        "EXPLAIN SELECT ctid FROM processed_events"
        " WHERE processed_at >= to_timestamp(%s) AND processed_at < to_timestamp(%s) LIMIT 5000",
        now - 20.5 * 86_400,
        now - 19.5 * 86_400,
    )

    assert "processed_events_age" in "\n".join(line for (line,) in plan)
    assert await upkeep.purge_marks(now - 20.5 * 86_400, now - 19.5 * 86_400, 5_000) == 5_000


def settings(endpoint: str) -> Settings:
    handler = HandlerSettings(event="*", handler="shop:ship", name="ship")
    return Settings(
        aws=AwsSettings(endpoint_url=endpoint),
        queues={"orders": QueueSettings(handlers=(handler,))},
    )


async def test_the_retention_is_that_of_the_queues_in_sqs(
    aws: LocalAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    sqs = boto3.client("sqs", endpoint_url=aws.endpoint_url, region_name="us-east-1")
    for name, seconds in (("orders", 120), ("orders-dlq", 3600)):
        sqs.create_queue(QueueName=name, Attributes={"MessageRetentionPeriod": str(seconds)})
    life = SqsQueueLife(settings(aws.endpoint_url), "orders")

    assert await life.lasting_seconds() == 3720.0

    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="orders-dlq")["QueueUrl"])
    with pytest.raises(Unavailable) as away:
        await life.lasting_seconds()
    assert away.value.kind is OutageKind.MISSING
