"""The relay as a process: outages, open transactions, orphans, dumps."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from outboxd.demo.postgres import EmbeddedPostgres
from outboxd.demo.postgres_binaries import find_binaries
from tests.system.relay_scene import RelayScene, now, relay_of
from tests.system.scene import alive, eventually

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

BEFORE_SECONDS = 3.0
OUTAGE_SECONDS = 6.0


@pytest.fixture
def relay_scene(database: str, aws_endpoint: str, tmp_path: Path) -> RelayScene:
    return RelayScene(database, aws_endpoint, tmp_path)


@contextmanager
def deleted(scene: RelayScene) -> Iterator[None]:
    with scene.sqs() as sqs:
        sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="orders")["QueueUrl"])
        yield
        scene.aws.advance(61)  # SQS refuses the name of a queue for a minute after its deletion
        sqs.create_queue(QueueName="orders")


@contextmanager
def denied(scene: RelayScene) -> Iterator[None]:
    with scene.aws.faults.access_denied("*", queue="orders", count=None):
        yield


@pytest.mark.parametrize("outage", [deleted, denied])
def test_a_queue_that_is_away_under_load_costs_no_event_and_holds_up_no_other_queue(
    relay_scene: RelayScene, outage: Callable[[RelayScene], AbstractContextManager[None]]
) -> None:
    scene = relay_scene

    with scene.daemon():
        with scene.load(per_second=30):
            began = now()
            time.sleep(BEFORE_SECONDS)
            with outage(scene):
                cut = now()
                time.sleep(OUTAGE_SECONDS)
                waiting = scene.pending()
                back = now()
            time.sleep(BEFORE_SECONDS)
        eventually(lambda: scene.pending() == 0, seconds=60)

    before = scene.median_delay("lead.created", began, cut)
    meanwhile = scene.median_delay("lead.created", cut, back)
    assert waiting > OUTAGE_SECONDS * 10
    assert scene.ask("SELECT sum(attempts), count(dead_at) FROM outboxd.outbox_events") == [(0, 0)]
    assert meanwhile <= 2 * before + 0.05
    assert scene.messages("leads") == scene.stored("lead.created")
    # What the deleted queue had accepted went with it.
    arrived = scene.messages("orders")
    assert len(arrived) == len(set(arrived)) >= waiting
    assert set(arrived) >= set(scene.published_since(back))
    assert outage is deleted or arrived == scene.stored("order.placed")


def test_no_session_is_idle_in_a_transaction_while_a_destination_hangs(
    relay_scene: RelayScene,
) -> None:
    scene = relay_scene
    seen: set[str] = set()

    with scene.daemon():
        with scene.aws.faults.hang("SendMessageBatch", queue="orders", count=None) as hang:
            scene.publish("order.placed", [f"order-{n}" for n in range(200)])
            hang.wait_until_fired()
            end = time.monotonic() + 3
            while time.monotonic() < end:
                seen |= {
                    state
                    for (state,) in scene.ask(
                        "SELECT state FROM pg_stat_activity WHERE application_name LIKE 'outboxd%%'"
                    )
                }
        eventually(lambda: scene.pending() == 0)

    assert "idle" in seen
    assert not any(state.startswith("idle in transaction") for state in seen)


def test_a_frozen_orphan_that_goes_on_after_a_new_daemon_took_over_sends_nothing(
    relay_scene: RelayScene,
) -> None:
    scene = relay_scene
    scene.publish("order.placed", [f"order-{n % 300}" for n in range(900)])

    with scene.daemon() as old:
        with scene.aws.faults.slow("SendMessageBatch", seconds=1.5, count=None) as slow:
            slow.wait_until_fired(8)
            # Its eight calls have arrived, and none is answered: nothing is half sent.
            orphan = relay_of(old)
            os.kill(orphan, signal.SIGSTOP)
            os.kill(old.pid, signal.SIGKILL)
        try:
            with scene.daemon():
                scene.publish("order.placed", [f"order-{n}" for n in range(300)])
                eventually(lambda: scene.pending() == 0, seconds=60)
                calls = scene.aws.calls("SendMessageBatch")
                os.kill(orphan, signal.SIGCONT)
                eventually(lambda: not alive(orphan), seconds=15)
                assert scene.aws.calls("SendMessageBatch") == calls
        finally:
            if alive(orphan):
                os.kill(orphan, signal.SIGKILL)

    arrived = scene.messages("orders")
    assert sorted(set(arrived)) == scene.stored("order.placed")
    assert len(arrived) <= len(set(arrived)) + 80, "no more than its eight calls"


def test_a_dump_with_a_backlog_is_restored_and_published_without_loss_or_repeat(
    relay_scene: RelayScene, postgres_server: EmbeddedPostgres, tmp_path: Path
) -> None:
    scene = relay_scene
    dump = find_binaries() / "pg_dump"
    restore = find_binaries() / "pg_restore"
    if not (dump.exists() and restore.exists()):
        pytest.skip(f"no pg_dump and pg_restore in {dump.parent}")
    with scene.daemon():
        scene.publish("order.placed", [f"order-{n % 20}" for n in range(200)])
        eventually(lambda: scene.pending() == 0)
    scene.publish("order.placed", [f"order-{n % 20}" for n in range(500)])
    assert scene.pending() == 500

    file = tmp_path / "outbox.dump"
    subprocess.run([dump, "--format=custom", f"--file={file}", scene.dsn], check=True)
    restored = postgres_server.create_database("restored")
    subprocess.run([restore, f"--dbname={restored}", file], check=True)
    # Transactions and numbers of another age: nothing may be derived from them.
    scene.use(restored)
    try:
        with scene.daemon():
            eventually(lambda: scene.pending() == 0)
            scene.publish("order.placed", ["order-1"])
            eventually(lambda: scene.pending() == 0)
        stored = scene.stored("order.placed")
    finally:
        postgres_server.drop_database("restored")

    assert len(stored) == 701
    assert scene.messages("orders") == stored


LARGE = """
    INSERT INTO outboxd.outbox_events (event_type, aggregate_type, aggregate_id, payload)
    SELECT 'order.placed', 'order', 'order-' || n, to_jsonb(repeat(%s, %s))
      FROM generate_series(1, %s) AS n
"""


def test_large_events_share_calls_as_they_fit_and_one_beyond_the_limit_dies_alone(
    relay_scene: RelayScene,
) -> None:
    """Nine of 200 kB are two calls; the tenth has 600,000 characters, which are 1.2 MB."""
    scene = relay_scene
    with scene.database() as connection:
        connection.execute(LARGE, ["x", 200_000, 9])
        connection.execute(LARGE, ["é", 600_000, 1])
        connection.execute(LARGE, ["s", 10, 50])

    with scene.daemon():
        eventually(
            lambda: (
                scene.ask("SELECT count(published_at), count(dead_at) FROM outboxd.outbox_events")
                == [(59, 1)]
            )
        )

    ((reason, attempts),) = scene.ask(
        "SELECT last_error, attempts FROM outboxd.outbox_events WHERE dead_at IS NOT NULL"
    )
    sizes = [int(word) for word in reason.split() if word.isdigit()]
    assert 1_200_000 < sizes[0] < 1_201_000
    assert sizes[1] == 1_048_576
    assert attempts == 1
    assert len(scene.messages("orders")) == 59
