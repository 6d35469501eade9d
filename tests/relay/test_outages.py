import threading
import time
from collections import Counter
from collections.abc import Iterator

import anyio
import anyio.to_thread
import pytest

from outboxd.adapters.migrations import Migrations
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.outbox import StoredEvent
from outboxd.core.relay_outcomes import EntryResult, Faulted
from outboxd.core.settings import RouteSettings
from outboxd.demo.postgres import EmbeddedPostgres, embedded_postgres
from outboxd.resources import project_directory
from tests.relay.scene import ACCEPTED, FakeDestination, Scene, eventually, quick


@pytest.fixture
def scene(database: str) -> Scene:
    return Scene(database)


class Switch:
    """A destination's script: away while it is off; counts the calls made meanwhile."""

    def __init__(self, kind: OutageKind = OutageKind.UNREACHABLE) -> None:
        self.on = threading.Event()
        self.kind = kind
        self.calls_while_off = 0
        self._lock = threading.Lock()
        self._flying = 0
        self.most_at_once = 0

    def __call__(self, events: list[StoredEvent]) -> list[EntryResult]:
        if self.on.is_set():
            return [ACCEPTED] * len(events)
        with self._lock:
            self.calls_while_off += 1
            self._flying += 1
            self.most_at_once = max(self.most_at_once, self._flying)
        time.sleep(0.01)
        with self._lock:
            self._flying -= 1
        raise Unavailable("cannot connect", self.kind)


async def test_an_outage_costs_no_attempt_and_writes_no_row(scene: Scene) -> None:
    switch = Switch()
    queue = FakeDestination(switch)
    seqs = scene.insert([f"order-{n}" for n in range(300)])
    versions = scene.ask("SELECT seq, xmin::text, ctid::text FROM outbox_events ORDER BY seq")

    async with scene.relay(queue) as relay:
        await eventually(lambda: switch.calls_while_off >= 3)
        now = scene.ask("SELECT seq, xmin::text, ctid::text FROM outbox_events ORDER BY seq")
        assert now == versions
        assert switch.most_at_once == 1
        switch.on.set()
        await eventually(lambda: not scene.pending())
        assert relay.facts.count("recovered") == 1
        assert relay.facts.count("paused") == switch.calls_while_off

    assert sorted(queue.seqs) == seqs
    assert queue.repeated == []
    assert scene.ask("SELECT sum(attempts) FROM outbox_events") == [(0,)]


async def test_the_outage_of_one_destination_is_not_that_of_another(scene: Scene) -> None:
    switch = Switch()
    orders, leads = FakeDestination(switch), FakeDestination()
    routes = (
        RouteSettings(events="order.*", to=("sqs:orders",)),
        RouteSettings(events="lead.*", to=("sqs:leads",)),
    )
    # Far more of them than a read returns, each an aggregate of its own, before the others.
    waiting = scene.insert([f"order-{n}" for n in range(4000)])
    flowing = scene.insert([f"lead-{n}" for n in range(100)], event_type="lead.created")

    async with scene.relay({"sqs:orders": orders, "sqs:leads": leads}, quick(routes=routes)):
        await eventually(lambda: sorted(leads.seqs) == flowing)
        assert orders.seqs == []
        switch.on.set()
        await eventually(lambda: len(orders.seqs) == len(waiting))

    assert orders.inversions == []


async def test_order_survives_an_outage(scene: Scene) -> None:
    switch = Switch()
    queue = FakeDestination(switch)
    seqs = scene.insert([f"order-{n % 7}" for n in range(140)])

    async with scene.relay(queue):
        await eventually(lambda: switch.calls_while_off >= 2)
        seqs += scene.insert([f"order-{n % 7}" for n in range(70)])
        switch.on.set()
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs
    assert queue.inversions == []


async def test_a_call_without_an_answer_is_repeated_with_the_same_events(scene: Scene) -> None:
    calls = Counter[str]()
    queue = FakeDestination()

    def loses_the_first_answer(events: list[StoredEvent]) -> list[EntryResult]:
        calls["send"] += 1
        if calls["send"] == 1:
            queue.accepted += events
            raise Unavailable("read timeout", OutageKind.TIMEOUT)
        return [ACCEPTED] * len(events)

    queue.script = loses_the_first_answer
    seqs = scene.insert([f"order-{n}" for n in range(5)])

    async with scene.relay(queue) as relay:
        await eventually(lambda: not scene.pending())
        assert relay.facts.last("uncertain") == (("sqs:orders", 5), {})

    assert sorted(queue.seqs) == sorted(seqs * 2)
    assert len({event.id for event in queue.accepted}) == 5


async def test_sending_stops_while_too_much_is_accepted_and_not_marked(scene: Scene) -> None:
    queue = FakeDestination()
    marks = anyio.Event()
    seqs = scene.insert([f"order-{n}" for n in range(200)])

    async with scene.relay(queue, quick(unsettled_limit=25)) as relay:
        relay.outbox.before_mark = marks.wait
        await eventually(lambda: len(queue.seqs) == 25)
        await anyio.sleep(0.1)
        assert len(queue.seqs) == 25
        marks.set()
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs


async def test_a_row_that_cannot_be_marked_does_not_hold_up_the_others(scene: Scene) -> None:
    queue = FakeDestination()
    seqs = scene.insert([f"order-{n}" for n in range(50)])
    refuse(scene, seqs[7])

    async with scene.relay(queue):
        await eventually(lambda: scene.pending() == [seqs[7]])
        await anyio.sleep(0.2)

    assert sorted(queue.seqs) == seqs


async def test_a_mark_that_has_no_effect_does_not_publish_for_ever(scene: Scene) -> None:
    queue = FakeDestination()
    seqs = scene.insert([f"order-{n}" for n in range(20)])
    refuse(scene, seqs[7], how="RETURN NULL")

    async with scene.relay(queue) as relay:
        await eventually(lambda: scene.pending() == [seqs[7]])
        await eventually(lambda: relay.facts.count("mismatched") > 0)
        await anyio.sleep(0.2)

    assert queue.repeated == []


async def test_a_failure_that_cannot_be_recorded_does_not_hold_up_the_others(scene: Scene) -> None:
    tries = Counter[int]()

    def fails_once(events: list[StoredEvent]) -> list[EntryResult]:
        tries.update(event.seq for event in events)
        return [
            Faulted("nul \0 and \ud800" + "x" * 9000) if tries[event.seq] == 1 else ACCEPTED
            for event in events
        ]

    queue = FakeDestination(fails_once)
    seqs = scene.insert([f"order-{n}" for n in range(20)])
    refuse(scene, seqs[7])

    async with scene.relay(queue):
        await eventually(lambda: scene.pending() == [seqs[7]])

    assert sorted(queue.seqs) == [seq for seq in seqs if seq != seqs[7]]


def refuse(scene: Scene, seq: int, how: str = "RAISE EXCEPTION 'not this row'") -> None:
    """A trigger that keeps one row from being updated."""
    scene.run(
        f"""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN IF OLD.seq = {seq} THEN {how}; END IF; RETURN NEW; END $$
        """
    )
    scene.run(
        "CREATE TRIGGER refuse BEFORE UPDATE ON outbox_events"
        " FOR EACH ROW EXECUTE FUNCTION refuse()"
    )


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    with embedded_postgres(durable=False) as server:
        yield server


async def test_a_restarted_database_is_told_what_was_accepted_and_nothing_is_sent_again(
    own_server: EmbeddedPostgres,
) -> None:
    dsn = own_server.create_database("stopped")
    Migrations(dsn, "outboxd", project_directory() / "migrations" / "outboxd").up()
    scene = Scene(dsn)
    queue = FakeDestination()
    marks = anyio.Event()
    seqs = scene.insert([f"order-{n}" for n in range(30)])

    async with scene.relay(queue) as relay:
        relay.outbox.before_mark = marks.wait
        await eventually(lambda: len(queue.seqs) == 30)
        await anyio.to_thread.run_sync(own_server.stop)
        marks.set()
        await eventually(lambda: relay.facts.count("database_failed") > 3)
        assert not relay.ended.is_set()
        await anyio.to_thread.run_sync(own_server.start)
        await eventually(lambda: not scene.pending())
        seqs += scene.insert([f"order-{n}" for n in range(30)])
        await eventually(lambda: not scene.pending())

    assert sorted(queue.seqs) == seqs
    assert queue.repeated == []


async def test_a_relay_is_ready_and_drains_without_any_database(
    own_server: EmbeddedPostgres,
) -> None:
    own_server.stop()

    async with Scene(own_server.dsn).relay(FakeDestination()) as relay:
        await relay.ready()
        await relay.drain(seconds=2.0)
