"""A relay that sleeps until a producer commits, on a real database."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from uuid import uuid4

import anyio
import anyio.to_thread
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from outboxd.actors.relay import waking
from outboxd.adapters.migrations import Migrations
from outboxd.adapters.postgres.sessions import Sessions
from outboxd.adapters.postgres.wake_ups import PostgresWakeUps, channel_of
from outboxd.core.errors import Unavailable
from outboxd.core.settings import DatabaseSettings
from outboxd.resources import project_directory
from tests.relay.scene import LISTENER, FakeDestination, Running, Scene, eventually, quick

ENABLE = "ALTER TABLE outbox_events ENABLE TRIGGER outbox_events_wake_sleepers"
DISABLE = "ALTER TABLE outbox_events DISABLE TRIGGER outbox_events_wake_sleepers"
SLEEPERS = "SELECT count(*) FROM outbox_sleepers WHERE asleep_until > now()"

SLEEPY = quick(wake_up=True, sleep_max_seconds=3600.0)
"""Whatever is published in time was not found by the clock."""

TERMINATE = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name = %s AND datname = current_database()
"""
LISTENING = """
    SELECT count(*) FROM pg_stat_activity
     WHERE application_name = %s AND datname = current_database() AND query LIKE 'LISTEN%%'
"""
COMMON = "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload) "


@pytest.fixture
def scene(database: str) -> Scene:
    scene = Scene(database)
    scene.run(ENABLE)
    return scene


def sleepers(scene: Scene) -> int:
    ((count,),) = scene.ask(SLEEPERS)
    return int(count)


async def asleep(relay: Running) -> None:
    """Until nothing is read any more but on a wake-up."""
    await eventually(lambda: isinstance(sleep_of(relay), waking.Asleep))


def sleep_of(relay: Running) -> waking.Sleep:
    assert relay.relay._waking is not None
    return relay.relay._waking._sleep


class Ear:
    """Somebody else who hears the channel."""

    def __init__(self, dsn: str, schema: str = "outboxd") -> None:
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.connection.execute(f'LISTEN "{channel_of(schema)}"'.encode())

    def heard(self) -> list[str]:
        return [each.payload for each in self.connection.notifies(timeout=0.2)]

    def close(self) -> None:
        self.connection.close()


async def test_an_event_is_published_right_after_its_commit_while_the_relay_sleeps(
    scene: Scene,
) -> None:
    queue = FakeDestination()

    async with scene.relay(queue, SLEEPY) as relay:
        for number in range(3):
            await asleep(relay)
            reads = relay.outbox.reads
            await anyio.sleep(0.3)
            assert relay.outbox.reads == reads
            committed = time.monotonic()
            scene.insert([f"order-{number}"])
            await eventually(lambda number=number: len(queue.seqs) == number + 1)  # type: ignore[misc]
            assert time.monotonic() - committed < 2.0
        assert relay.facts.count("woken") == 3

    assert sleepers(scene) == 0


async def test_a_producer_that_saw_nobody_asleep_and_commits_late_is_not_slept_through(
    scene: Scene,
) -> None:
    queue = FakeDestination()
    with psycopg.connect(scene.dsn) as early, psycopg.connect(scene.dsn) as later:
        # The younger one has the higher transaction number, and ends last.
        for number, connection in enumerate((later, early)):
            connection.execute(
                (
                    COMMON.replace("INTO ", "INTO outboxd.") + "VALUES ('order.a', 'o', %s, '1')"
                ).encode(),
                (str(number),),
            )
        async with scene.relay(queue, SLEEPY) as relay:
            await eventually(lambda: sleepers(scene) == 1)
            await anyio.sleep(0.5)
            assert not isinstance(sleep_of(relay), waking.Asleep)
            later.commit()
            await eventually(lambda: len(queue.seqs) == 1)
            await eventually(lambda: sleepers(scene) == 1)
            await anyio.sleep(0.3)
            assert not isinstance(sleep_of(relay), waking.Asleep)
            early.commit()
            await eventually(lambda: len(queue.seqs) == 2)
            await asleep(relay)


async def test_no_producer_notifies_while_the_relay_is_busy(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a loaded machine the pauses between these events would be long enough to lie down in.
    monkeypatch.setattr(waking, "AWAKE_SECONDS", 3600.0)
    queue = FakeDestination()
    with closing(Ear(scene.dsn)) as ear:
        async with scene.relay(queue, SLEEPY) as relay:
            await asleep(relay)
            scene.insert(["order-0"])
            await eventually(lambda: sleepers(scene) == 0)
            await anyio.to_thread.run_sync(ear.heard)
            for number in range(50):
                await anyio.to_thread.run_sync(scene.insert, [f"order-{number}"])
                await anyio.sleep(0.005)
            assert await anyio.to_thread.run_sync(ear.heard) == []
            await eventually(lambda: len(queue.seqs) == 51)


async def test_a_killed_listener_is_replaced_and_events_are_delivered_meanwhile(
    scene: Scene,
) -> None:
    queue = FakeDestination()

    async with scene.relay(queue, SLEEPY) as relay:
        await asleep(relay)
        scene.ask(TERMINATE, LISTENER)
        scene.insert(["order-1"])
        await eventually(lambda: len(queue.seqs) == 1)
        await eventually(lambda: scene.ask(LISTENING, LISTENER) == [(1,)])
        await asleep(relay)
        scene.insert(["order-2"])
        await eventually(lambda: len(queue.seqs) == 2)
        assert relay.facts.count("woken") >= 1


class Freezer:
    """Stands between the listener and the server, and passes nothing on while it is frozen."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.frozen = threading.Event()
        self._ended: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
            except OSError:
                return
            if self.frozen.is_set():
                self._ended.append(near)
                continue
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._path)
            self._ended += [near, far]
            for source, target in ((near, far), (far, near)):
                thread = threading.Thread(target=self._pass_on, args=(source, target))
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self.frozen.is_set():
                    target.sendall(data)
        except OSError:
            pass

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self._ended:
            with closing(each), suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()


@pytest.fixture
def freezer(scene: Scene) -> Iterator[Freezer]:
    given = conninfo_to_dict(scene.dsn)
    freezer = Freezer(f"{given['host']}/.s.PGSQL.{given['port']}")
    scene.listener_dsn = psycopg.conninfo.make_conninfo(
        scene.dsn, host="127.0.0.1", port=freezer.port, sslmode="disable", gssencmode="disable"
    )
    yield freezer
    freezer.close()


async def test_a_frozen_listener_is_noticed_by_its_silence(
    scene: Scene, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "HEARTBEAT_SECONDS", 0.3)
    monkeypatch.setattr(waking, "ECHO_SECONDS", 0.3)
    queue = FakeDestination()

    async with scene.relay(queue, SLEEPY) as relay:
        await asleep(relay)
        freezer.frozen.set()
        scene.insert(["order-1"])
        await eventually(lambda: len(queue.seqs) == 1)
        await eventually(lambda: ("listen",) in [args for _, args, _ in relay.facts.told])
        freezer.frozen.clear()
        await asleep(relay)
        scene.insert(["order-2"])
        await eventually(lambda: len(queue.seqs) == 2)


async def test_a_heartbeat_keeps_the_sleeper_known(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "HEARTBEAT_SECONDS", 0.1)

    async with scene.relay(FakeDestination(), SLEEPY) as relay:
        await asleep(relay)
        before = scene.ask("SELECT asleep_until FROM outbox_sleepers")
        await eventually(lambda: scene.ask("SELECT asleep_until FROM outbox_sleepers") > before)
        assert isinstance(sleep_of(relay), waking.Asleep)
        assert relay.facts.count("database_failed") == 0


async def test_a_relay_that_producers_lost_sight_of_reads_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after it was frozen for longer than they believe in it."""
    monkeypatch.setattr(waking, "HEARTBEAT_SECONDS", 0.3)
    queue = FakeDestination()

    async with scene.relay(queue, SLEEPY) as relay:
        await asleep(relay)
        scene.run("UPDATE outbox_sleepers SET asleep_until = now() - interval '1 s'")
        scene.insert(["order-1"])
        await eventually(lambda: len(queue.seqs) == 1)
        await asleep(relay)


async def test_a_disabled_trigger_is_told_once_and_reads_go_on_by_the_clock(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.run(DISABLE)
    queue = FakeDestination()

    async with scene.relay(queue, SLEEPY):
        scene.insert(["order-1"])
        await eventually(lambda: len(queue.seqs) == 1)
        await eventually(lambda: [r for r in caplog.records if r.msg.startswith("wake-ups un")])
        assert sleepers(scene) == 0
        scene.insert(["order-2"])
        await eventually(lambda: len(queue.seqs) == 2)

    (told,) = [r for r in caplog.records if r.msg.startswith("wake-ups un")]
    assert "ENABLE TRIGGER outbox_events_wake_sleepers" in told.__dict__["error"]


async def test_several_sleeping_relays_publish_each_event_once(scene: Scene) -> None:
    queue = FakeDestination()

    async with scene.relay(queue, SLEEPY) as first, scene.relay(queue, SLEEPY) as second:
        await eventually(lambda: len(scene.owned()) == 2)
        await asleep(first)
        await asleep(second)
        seqs = scene.insert([f"order-{number}" for number in range(40)])
        await eventually(lambda: sorted(queue.seqs) == seqs)


async def test_the_row_of_a_killed_relay_stops_costing_and_goes(scene: Scene) -> None:
    scene.run(
        "INSERT INTO outbox_sleepers VALUES (%s, now() - interval '1 s'),"
        " (%s, now() - interval '2 min')",
        killed := uuid4(),
        uuid4(),
    )
    with closing(Ear(scene.dsn)) as ear:
        scene.insert(["order-1"])
        assert ear.heard() == []

    async with scene.relay(FakeDestination(), SLEEPY) as relay:
        await asleep(relay)
        known = {row for (row,) in scene.ask("SELECT relay FROM outbox_sleepers")}
        assert known == {killed, relay.identity}


def test_each_statement_notifies_once_and_only_while_somebody_sleeps(scene: Scene) -> None:
    with closing(Ear(scene.dsn)) as ear:
        scene.insert(["order-1"])
        assert ear.heard() == []
        scene.run("INSERT INTO outbox_sleepers VALUES (%s, now() + interval '1 min')", uuid4())
        scene.insert([f"order-{number}" for number in range(100)])
        assert ear.heard() == [""]
        scene.run(DISABLE)
        scene.insert(["order-1"])
        assert ear.heard() == []


def test_two_schemas_of_one_database_do_not_wake_each_other(scene: Scene) -> None:
    Migrations(scene.dsn, "billing", project_directory() / "migrations" / "outboxd").up()
    scene.run(ENABLE.replace("outbox_events E", "billing.outbox_events E"))
    for schema in ("outboxd", "billing"):
        scene.run(f"INSERT INTO {schema}.outbox_sleepers VALUES (%s, 'infinity')", uuid4())

    with closing(Ear(scene.dsn)) as ear, closing(Ear(scene.dsn, "billing")) as others:
        scene.run(COMMON.replace("INTO ", "INTO billing.") + "VALUES ('a', 'b', 'c', '1')")
        assert ear.heard() == []
        assert others.heard() == [""]


def test_a_producer_does_not_fail_when_the_sleepers_cannot_be_asked(scene: Scene) -> None:
    scene.run("ALTER TABLE outbox_sleepers RENAME TO elsewhere")

    scene.insert(["order-1"])

    assert len(scene.pending()) == 1


def test_a_producer_cannot_slip_a_table_of_its_own_under_the_triggers_rights(scene: Scene) -> None:
    with scene.connection() as connection, closing(Ear(scene.dsn)) as ear:
        connection.execute("CREATE TEMP TABLE outbox_sleepers (asleep_until timestamptz)")
        connection.execute("INSERT INTO pg_temp.outbox_sleepers VALUES ('infinity')")
        connection.execute((COMMON + "VALUES ('a', 'b', 'c', '1')").encode())
        assert ear.heard() == []


async def test_a_producers_statement_in_a_lower_transaction_may_not_know(database: str) -> None:
    sessions = Sessions(DatabaseSettings(url=database), "x")
    wake_ups = PostgresWakeUps(sessions, sessions, "outboxd")
    with psycopg.connect(database) as oldest, psycopg.connect(database) as young:
        oldest.execute("SELECT pg_current_xact_id()")
        young.execute("SELECT pg_current_xact_id()")
        first_to_know = await wake_ups.declare(uuid4())
        assert await wake_ups.oldest_open() < first_to_know
        oldest.commit()
        assert await wake_ups.oldest_open() < first_to_know
        young.commit()
        assert await wake_ups.oldest_open() > first_to_know
    await sessions.close()


async def test_listening_says_how_to_enable_what_is_disabled(database: str) -> None:
    sessions = Sessions(DatabaseSettings(url=database), "x")

    with pytest.raises(Unavailable, match="ENABLE TRIGGER"):
        async with PostgresWakeUps(sessions, sessions, "outboxd").listening():
            raise AssertionError("nobody notifies")
    await sessions.close()
