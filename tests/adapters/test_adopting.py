"""docs/adopting.md: its statements, by psql, on a table in use."""

import re
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from outboxd import publish
from outboxd.adapters.migrations import Migrations
from outboxd.adapters.postgres.outbox import READ, PostgresOutbox
from outboxd.adapters.postgres.sessions import Sessions
from outboxd.core.outbox import BUCKETS
from outboxd.core.settings import DatabaseSettings
from outboxd.core.windows import EVERYTHING, LAST_SEQ
from outboxd.demo.postgres_binaries import find_binaries
from outboxd.resources import project_directory
from tests.producer_scene import an_event, rows

PAGE = (project_directory() / "docs" / "adopting.md").read_text(encoding="utf-8")
[TABLE] = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)
EXPAND, NUMBER, INDEX, LOOK, EXCHANGE, BACK = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.M | re.S)

ROWS = 100_000
UNSENT = 2000

FILL = """
    INSERT INTO public.outbox
    SELECT gen_random_uuid(), 'order', 'o-' || n %% 500, 'order.placed', jsonb_build_object('n', n),
           timestamptz '2026-01-01' + n * interval '1 second',
           CASE WHEN n <= %s THEN timestamptz '2026-02-01' END
      FROM generate_series(1, %s) n
     ORDER BY random()
"""

WRITE = """
    INSERT INTO public.outbox (id, aggregatetype, aggregateid, type, payload)
    VALUES (gen_random_uuid(), 'order', %s, 'order.placed', jsonb_build_object('late', %s::int))
    RETURNING id
"""

SEND = """
    UPDATE public.outbox SET sent_at = now()
     WHERE id IN (SELECT id FROM public.outbox WHERE sent_at IS NULL ORDER BY created_at LIMIT 5)
"""


class Service:
    """Writes by the old names in one thread, and relays in another, until told to stop."""

    def __init__(self, dsn: str) -> None:
        self.written = 0
        self.slowest = 0.0
        self.failures: list[str] = []
        self._dsn = dsn
        self._stopping = threading.Event()
        self._relay_stopping = threading.Event()
        self._writer = threading.Thread(target=self._write)
        self._relay = threading.Thread(target=self._send)
        for thread in (self._writer, self._relay):
            thread.start()

    def stop_relay(self) -> None:
        self._relay_stopping.set()
        self._relay.join(20)

    def stop(self) -> None:
        self.stop_relay()
        self._stopping.set()
        self._writer.join(20)

    def _write(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._stopping.is_set():
                start = time.monotonic()
                try:
                    connection.execute(WRITE, [f"o-{self.written % 500}", self.written])
                except psycopg.Error as error:
                    self.failures.append(str(error))
                    return
                self.slowest = max(self.slowest, time.monotonic() - start)
                self.written += 1
                self._stopping.wait(0.002)

    def _send(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._relay_stopping.is_set():
                try:
                    connection.execute(SEND)
                except psycopg.Error as error:
                    self.failures.append(str(error))
                    return
                self._relay_stopping.wait(0.2)


@contextmanager
def in_use(dsn: str) -> Iterator[Service]:
    service = Service(dsn)
    try:
        yield service
    finally:
        service.stop()


class Adopted(NamedTuple):
    """What became of it, and how long each step took."""

    service: Service
    seconds: dict[str, float]


def psql(dsn: str, folder: Path, text: str) -> None:
    """As an operator runs it: every statement by itself, and the first error ends it."""
    file = folder / "step.sql"
    file.write_text(text)
    command: list[str | Path] = [
        find_binaries(None) / "psql",
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-f",
        file,
        dsn,
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def adopt(dsn: str, folder: Path, count: int) -> Adopted:
    rows(dsn, TABLE)
    rows(dsn, FILL, count - UNSENT, count)
    rows(dsn, "ANALYZE public.outbox")
    seconds: dict[str, float] = {}
    with in_use(dsn) as service:
        for name, text in {
            "migrate": "",
            "expand": EXPAND,
            "number": NUMBER,
            "index": INDEX,
            "look": LOOK,
            "exchange": EXCHANGE,
        }.items():
            start = time.monotonic()
            if name == "migrate":
                Migrations(dsn, "outboxd", project_directory() / "migrations" / "outboxd").up()
            if name == "exchange":
                service.stop_relay()
            psql(dsn, folder, text)
            seconds[name] = time.monotonic() - start
        written = service.written
        while service.written < written + 20 and not service.failures:
            time.sleep(0.01)  # through the view
    return Adopted(service, seconds)


@pytest.fixture
async def sessions(bare_database: str) -> AsyncIterator[Sessions]:
    sessions = Sessions(DatabaseSettings(url=bare_database), "test")
    yield sessions
    await sessions.close()


async def test_a_table_in_use_is_adopted(
    bare_database: str, tmp_path: Path, sessions: Sessions
) -> None:
    adopted = adopt(bare_database, tmp_path, ROWS)

    check_that_nothing_was_refused(bare_database, adopted.service)
    check_that_old_rows_are_in_their_old_order(bare_database)
    check_that_new_rows_come_after_old_ones(bare_database)
    check_that_the_relays_read_uses_the_index(bare_database)
    await check_that_the_relay_reads_and_marks(bare_database, sessions)
    check_that_new_producers_publish(bare_database)


def check_that_nothing_was_refused(dsn: str, service: Service) -> None:
    assert service.failures == []
    [(kept, late, unnumbered)] = rows(
        dsn,
        "SELECT count(*), count(*) FILTER (WHERE payload ? 'late'), count(*) FILTER (WHERE seq IS"
        " NULL) FROM outboxd.outbox_events",
    )
    assert (kept, late, unnumbered) == (ROWS + service.written, service.written, 0)


def check_that_old_rows_are_in_their_old_order(dsn: str) -> None:
    [(disorder,)] = rows(
        dsn,
        "SELECT count(*) FROM (SELECT occurred_at < lag(occurred_at) OVER (ORDER BY seq) AS before"
        " FROM outboxd.outbox_events WHERE seq < 1000000000) pairs WHERE before",
    )
    assert disorder == 0


def check_that_new_rows_come_after_old_ones(dsn: str) -> None:
    """In the order of their inserts, whatever step was at work; through the view, too."""
    late = [
        int(number)
        for (number,) in rows(
            dsn,
            "SELECT payload ->> 'late' FROM outboxd.outbox_events WHERE seq >= 1000000000"
            " ORDER BY seq",
        )
    ]
    assert late == list(range(late[0], late[0] + len(late)))
    [(oldest_of_the_others,)] = rows(
        dsn,
        "SELECT max((payload ->> 'late')::int) FROM outboxd.outbox_events WHERE seq < 1000000000",
    )
    assert oldest_of_the_others is None or oldest_of_the_others == late[0] - 1


def check_that_the_relays_read_uses_the_index(dsn: str) -> None:
    query = READ.format(schema="outboxd")
    parameters = {
        "buckets": [1, 2],
        "after": [0, 0],
        "up_to": [LAST_SEQ, LAST_SEQ],
        "per_bucket": 20,
        "excluded_keys": [],
        "excluded_seqs": [],
        "bytes": 1000,
        "now": 0.0,
    }
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = psycopg.ClientCursor(connection)
        plan = cursor.execute(f"EXPLAIN {query}".encode(), parameters).fetchall()
    assert "outbox_events_pending" in "\n".join(line for (line,) in plan)


async def check_that_the_relay_reads_and_marks(dsn: str, sessions: Sessions) -> None:
    outbox = PostgresOutbox(sessions, "outboxd", keep_published=True)
    pending: set[int] = {
        seq
        for (seq,) in rows(dsn, "SELECT seq FROM outboxd.outbox_events WHERE published_at IS NULL")
    }
    found = [
        event.seq
        for event in await outbox.read(dict.fromkeys(range(BUCKETS), EVERYTHING), 10_000, "", [])
    ]
    assert found == sorted(pending)

    await outbox.mark_published(found[:10])

    assert rows(dsn, "SELECT count(*) FROM public.outbox WHERE sent_at IS NULL") == [
        (len(found) - 10,)
    ]


def check_that_new_producers_publish(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        publish(connection, an_event("by outboxd"))
    rows(dsn, "SELECT outboxd.outbox_publish('order.placed', 'order', 'o-1', '\"by SQL\"')")

    last = rows(dsn, "SELECT payload FROM public.outbox ORDER BY created_at DESC LIMIT 2")
    assert last == [("by SQL",), ("by outboxd",)]


def test_the_way_back_leads_to_the_old_table(bare_database: str, tmp_path: Path) -> None:
    adopt(bare_database, tmp_path, UNSENT)
    psql(bare_database, tmp_path, BACK)

    with in_use(bare_database) as service:
        while service.written < 20 and not service.failures:
            time.sleep(0.01)

    assert service.failures == []


def test_the_exchange_is_refused_once_outboxd_has_events_of_its_own(
    bare_database: str, tmp_path: Path
) -> None:
    rows(bare_database, TABLE)
    Migrations(bare_database, "outboxd", project_directory() / "migrations" / "outboxd").up()
    for text in (EXPAND, NUMBER, INDEX):
        psql(bare_database, tmp_path, text)
    with psycopg.connect(bare_database) as connection:
        publish(connection, an_event(1))

    with pytest.raises(AssertionError, match=r"outbox_events has events of its own"):
        psql(bare_database, tmp_path, EXCHANGE)
    assert rows(bare_database, "SELECT count(*) FROM outboxd.outbox_events") == [(1,)]


def test_a_long_transaction_is_not_queued_behind(bare_database: str, tmp_path: Path) -> None:
    """Else every writer would wait with the exclusive lock, for as long as that transaction."""
    rows(bare_database, TABLE)
    with psycopg.connect(bare_database) as other:
        other.execute(WRITE, ["o-1", 1])

        with pytest.raises(AssertionError, match="lock timeout"):
            psql(bare_database, tmp_path, EXPAND)
    psql(bare_database, tmp_path, EXPAND)


def test_the_numbering_goes_on_where_it_was_stopped(bare_database: str, tmp_path: Path) -> None:
    rows(bare_database, TABLE)
    rows(bare_database, FILL, 1000, 1000)
    psql(bare_database, tmp_path, EXPAND)
    procedure = NUMBER[NUMBER.index("CREATE PROCEDURE") : NUMBER.index("SET enable")]
    psql(bare_database, tmp_path, procedure)

    def run() -> None:
        with suppress(psycopg.errors.AdminShutdown):
            rows(bare_database, "CALL public.number_outbox(1)")

    thread = threading.Thread(target=run)
    thread.start()
    while rows(bare_database, "SELECT count(seq) > 20 FROM public.outbox") == [(False,)]:
        assert thread.is_alive()
    rows(
        bare_database,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CALL%%'",
    )
    thread.join(20)
    rows(bare_database, "CALL public.number_outbox(100)")

    assert rows(
        bare_database,
        "SELECT count(*), count(DISTINCT seq), min(seq), max(seq) FROM public.outbox",
    ) == [(1000, 1000, 1, 1000)]
    assert rows(
        bare_database,
        "SELECT count(*) FROM public.outbox WHERE (payload ->> 'n')::bigint <> seq",
    ) == [(0,)]
