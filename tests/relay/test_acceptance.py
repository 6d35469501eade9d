"""Producers, relays and failures all at once; then the books are checked."""

import random
import threading
import time
from collections import Counter
from contextlib import AsyncExitStack

import anyio
import anyio.to_thread
import psycopg
import pytest

from outboxd.core import horizon, windows
from outboxd.core.outbox import StoredEvent
from outboxd.core.relay_outcomes import EntryResult, Faulted
from tests.relay.scene import ACCEPTED, FakeDestination, Scene, eventually, quick

AGGREGATES = 50
PRODUCERS = 4


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


class Producer(threading.Thread):
    """Locks two aggregates per transaction, dawdles, and inserts an event of each.

    Between the lock and the insert, and between the insert and the commit, other transactions take
    numbers and commit: the order of commits is not that of the numbers.
    """

    def __init__(self, dsn: str, seed: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._dsn = dsn
        self._dice = random.Random(seed)
        self._stop_asked = stop
        self.stored = 0

    def run(self) -> None:
        with psycopg.connect(self._dsn, options="-c search_path=outboxd") as connection:
            while not self._stop_asked.is_set():
                self._store_two(connection)

    def _store_two(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        numbers = sorted(self._dice.sample(range(AGGREGATES), 2))
        with connection.transaction(force_rollback=self._dice.random() < 0.05) as transaction:
            for number in numbers:
                connection.execute("SELECT 1 FROM shelf WHERE id = %s FOR UPDATE", (number,))
                time.sleep(self._dice.random() * 0.003)
                connection.execute(
                    "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload)"
                    " VALUES ('order.placed', 'order', %s, '1')",
                    (str(number),),
                )
            time.sleep(self._dice.random() * 0.003)
        if not transaction.force_rollback:
            self.stored += 2


def one_in_ten_fails(seed: int) -> FakeDestination:
    dice = random.Random(seed)

    def script(events: list[StoredEvent]) -> list[EntryResult]:
        time.sleep(dice.random() * 0.01)
        return [Faulted("InternalError") if dice.random() < 0.1 else ACCEPTED for _ in events]

    return FakeDestination(script)


def behind_a_wall(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of events wait before all others, and reads begin behind them."""
    monkeypatch.setattr(windows, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(horizon, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(horizon, "SAMPLE_SECONDS", 0.01)
    monkeypatch.setattr(windows, "RESCAN_SECONDS", 3600.0)
    monkeypatch.setattr(windows, "FIRST_WINDOW", 50)
    monkeypatch.setattr(windows, "SMALLEST_WINDOW", 50)
    blocked = [f"blocked-{number}" for number in range(640)]
    scene.insert(blocked)
    scene.run("UPDATE outbox_events SET next_attempt_at = 'infinity'")


@pytest.mark.parametrize("walls", [False, True], ids=["free", "behind a wall"])
async def test_nothing_is_lost_repeated_or_out_of_order(
    scene: Scene, walls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if walls:
        behind_a_wall(scene, monkeypatch)
    blocked = scene.pending()
    scene.run("CREATE TABLE shelf AS SELECT generate_series(0, %s) AS id", AGGREGATES - 1)
    scene.run("ALTER TABLE shelf ADD PRIMARY KEY (id)")
    queue, stop = one_in_ten_fails(1), threading.Event()
    producers = [Producer(scene.dsn, seed, stop) for seed in range(PRODUCERS)]
    settings = quick(backoff_first_seconds=0.01, max_attempts=100)

    async with AsyncExitStack() as relays:
        await relays.enter_async_context(scene.relay(queue, settings))
        await relays.enter_async_context(scene.relay(queue, settings))
        for producer in producers:
            producer.start()
        await anyio.sleep(1.5)
        # A third comes and goes, so that buckets change hands under load.
        async with scene.relay(queue, settings) as third:
            await eventually(lambda: scene.owned()[third.identity] > 10)
            await anyio.sleep(1.0)
        await anyio.sleep(0.5)
        stop.set()
        for producer in producers:
            await anyio.to_thread.run_sync(producer.join)
        await eventually(lambda: scene.pending() == blocked)

    rows = scene.ask("SELECT seq FROM outbox_events WHERE NOT seq = ANY (%s)", blocked)
    stored = [seq for (seq,) in rows]
    assert len(stored) == sum(producer.stored for producer in producers) > 200
    assert Counter(queue.seqs) == Counter(stored)
    assert queue.inversions == []
