"""Migrations: applied once, checked by version, and what the tables they make hold to."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from outboxd.adapters.migrations import MigrationFailed, Migrations, SchemaMismatch
from outboxd.core.errors import Unavailable
from outboxd.resources import project_directory

DIRECTORY = project_directory() / "migrations" / "outboxd"
NAMES = [
    "0001_outbox",
    "0002_inbox",
    "0003_publish_function",
    "0004_suspects_deaths",
    "0005_publish_checks",
    "0006_operating",
    "0007_wake_up",
]
TABLES = {
    "outbox_events",
    "outbox_buckets",
    "outbox_relays",
    "processed_events",
    "handler_failures",
    "suspects",
    "outbox_audit",
    "outbox_sleepers",
    "inbox_polls",
    "inbox_gaps",
}


def of_outboxd(dsn: str, schema: str = "outboxd") -> Migrations:
    return Migrations(dsn, schema, DIRECTORY)


def query(dsn: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        cursor = connection.execute(statement.encode(), parameters)
        return cursor.fetchall() if cursor.description else []


def tables(dsn: str, schema: str) -> set[str]:
    found = query(dsn, "SELECT tablename FROM pg_tables WHERE schemaname = %s", schema)
    return {name for (name,) in found if not name.startswith("_yoyo")}


def written(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        (directory / f"{name.replace('__', '.')}.sql").write_text(text)
    return directory


def test_up_applies_everything_in_order_and_then_nothing(bare_database: str) -> None:
    assert of_outboxd(bare_database).up() == NAMES
    assert of_outboxd(bare_database).up() == []
    assert tables(bare_database, "outboxd") == TABLES


def test_down_takes_back_the_newest_first(bare_database: str) -> None:
    migrations = of_outboxd(bare_database)
    migrations.up()

    assert migrations.down() == NAMES[-1:]
    assert migrations.down(len(NAMES)) == NAMES[-2::-1]
    assert migrations.down() == []
    assert tables(bare_database, "outboxd") == set()
    assert migrations.up() == NAMES


def test_two_schemas_of_one_database_are_independent(bare_database: str) -> None:
    of_outboxd(bare_database, "orders").up()
    of_outboxd(bare_database, "billing").up()
    of_outboxd(bare_database, "orders").down(len(NAMES))

    assert tables(bare_database, "orders") == set()
    assert tables(bare_database, "billing") == TABLES
    of_outboxd(bare_database, "billing").check_version()


def test_status_looks_and_touches_nothing(bare_database: str) -> None:
    states = of_outboxd(bare_database).status()

    assert [(state.name, state.applied, state.unknown) for state in states] == [
        (name, False, False) for name in NAMES
    ]
    assert query(bare_database, "SELECT 1 FROM pg_namespace WHERE nspname = 'outboxd'") == []


def test_an_empty_database_is_refused_with_the_command_to_run(bare_database: str) -> None:
    with pytest.raises(SchemaMismatch) as refusal:
        of_outboxd(bare_database).check_version()

    assert str(refusal.value) == (
        f"the database lacks {len(NAMES)} migrations in schema 'outboxd' (first: 0001_outbox): "
        "run `outboxd migrate`"
    )


def test_a_database_one_migration_behind_is_refused(database: str) -> None:
    of_outboxd(database).down()

    with pytest.raises(SchemaMismatch, match=rf"lacks 1 migration in .*{NAMES[-1]}"):
        of_outboxd(database).check_version()


def test_a_current_database_is_accepted(database: str) -> None:
    of_outboxd(database).check_version()


@pytest.mark.parametrize("act", ["check_version", "up", "down"])
def test_a_database_of_a_newer_version_is_left_alone(database: str, act: str) -> None:
    query(
        database,
        "INSERT INTO outboxd._yoyo_migration VALUES ('hash', '0099_tomorrow', localtimestamp)",
    )

    with pytest.raises(SchemaMismatch, match=r"first: 0099_tomorrow\): upgrade outboxd"):
        getattr(of_outboxd(database), act)()
    assert of_outboxd(database).status()[-1].unknown
    assert tables(database, "outboxd") == TABLES


def test_a_failing_migration_leaves_no_trace_and_those_before_it(
    bare_database: str, tmp_path: Path
) -> None:
    directory = written(
        tmp_path,
        a01_good="CREATE TABLE good (x int);",
        a02_bad="CREATE TABLE half (x int); SELECT 1/0;",
    )

    with pytest.raises(MigrationFailed, match=r"a02_bad failed .*division by zero"):
        Migrations(bare_database, "app", directory).up()

    assert tables(bare_database, "app") == {"good"}
    states = Migrations(bare_database, "app", directory).status()
    assert [state.applied for state in states] == [True, False]


def test_a_migration_without_a_way_down_stays(bare_database: str, tmp_path: Path) -> None:
    migrations = Migrations(bare_database, "app", written(tmp_path, b01="CREATE TABLE t (x int);"))
    migrations.up()

    with pytest.raises(MigrationFailed, match="b01 cannot be rolled back"):
        migrations.down()
    assert tables(bare_database, "app") == {"t"}


def test_threads_and_processes_at_once_apply_each_migration_once(bare_database: str) -> None:
    code = (
        "import sys; from pathlib import Path; from outboxd.adapters.migrations import Migrations; "
        "print(*Migrations(sys.argv[1], 'outboxd', Path(sys.argv[2])).up())"
    )
    command = [sys.executable, "-c", code, bare_database, str(DIRECTORY)]

    def in_a_process(_: int) -> list[str]:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    def in_a_thread(_: int) -> list[str]:
        return of_outboxd(bare_database).up()

    with ThreadPoolExecutor(6) as pool:
        runs = [pool.submit(run, 0) for run in (in_a_process, in_a_thread) * 3]
        applied = [name for run in runs for name in run.result()]

    assert applied == NAMES
    of_outboxd(bare_database).check_version()


def test_a_run_waits_for_another_and_is_let_in_when_that_one_dies(bare_database: str) -> None:
    other = psycopg.connect(bare_database)
    other.execute("SELECT pg_advisory_xact_lock(hashtextextended('outboxd migrations outboxd', 0))")
    run = threading.Thread(target=of_outboxd(bare_database).up)
    run.start()
    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while not query(bare_database, waiting):
        assert run.is_alive()

    query(
        bare_database, "SELECT pg_terminate_backend(%s)", other.info.backend_pid
    )  # its process is killed
    other.close()

    run.join()
    of_outboxd(bare_database).check_version()


def test_no_lock_of_yoyos_own_can_be_left_behind(database: str) -> None:
    names = query(database, "SELECT tablename FROM pg_tables WHERE schemaname = 'outboxd'")

    assert ("yoyo_lock",) not in names


def test_an_unreachable_database_is_an_outage(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        Migrations(f"host={tmp_path} dbname=none", "outboxd", DIRECTORY).check_version()


def test_a_user_without_a_name_can_migrate(
    bare_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless(_: int) -> object:
        raise KeyError("getpwuid(): uid not found")

    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nameless)

    assert of_outboxd(bare_database).up() == NAMES


@pytest.mark.parametrize("schema", ["outboxd", "shop"])
def test_every_table_tells_an_operator_what_it_is(shop_database: str, schema: str) -> None:
    silent = query(
        shop_database,
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r' "
        "AND relname NOT LIKE '\\_yoyo%%' AND obj_description(oid) IS NULL",
        schema,
    )

    assert silent == []


def test_every_column_of_outboxd_does_so_too(database: str) -> None:
    silent = query(
        database,
        "SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "
        "WHERE relnamespace = 'outboxd'::regnamespace AND relkind = 'r' AND attnum > 0 "
        "AND relname NOT LIKE '\\_yoyo%%' AND col_description(attrelid, attnum) IS NULL",
    )

    assert silent == []


def test_there_are_64_free_buckets(database: str) -> None:
    [(count, owners, epochs)] = query(
        database, "SELECT count(*), count(owner), sum(epoch) FROM outboxd.outbox_buckets"
    )

    assert (count, owners, epochs) == (64, 0, 0)


def test_the_relays_read_is_served_by_its_index(database: str) -> None:
    plan = query(
        database,
        """
        EXPLAIN SELECT e.* FROM unnest('{1,2}'::smallint[]) AS b(n) CROSS JOIN LATERAL (
            SELECT * FROM outboxd.outbox_events
             WHERE (hashtextextended(aggregate_type || chr(31) || aggregate_id, 0) & 63)::smallint
                   = b.n
               AND published_at IS NULL AND dead_at IS NULL AND seq > 0
             ORDER BY seq LIMIT 20) e
        """,
    )

    lines = "\n".join(line for (line,) in plan)
    assert "Index Scan using outbox_events_pending" in lines
    assert "Sort" not in lines


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("event_type", "('', 'order', '1', '{}', '{}')"),
        ("event_type", "(repeat('x', 129), 'order', '1', '{}', '{}')"),
        ("aggregate_type", "('order.placed', repeat('x', 256), '1', '{}', '{}')"),
        ("aggregate_id", "('order.placed', 'order', repeat('x', 256), '{}', '{}')"),
        ("headers", "('order.placed', 'order', '1', '{}', '[]')"),
        ("payload", "('order.placed', 'order', '1', NULL, '{}')"),
    ],
)
def test_an_event_that_could_never_be_published_is_refused_at_the_insert(
    database: str, columns: str, values: str
) -> None:
    with pytest.raises(psycopg.errors.IntegrityError, match=columns):
        query(
            database,
            "INSERT INTO outboxd.outbox_events "
            f"(event_type, aggregate_type, aggregate_id, payload, headers) VALUES {values}",
        )


def test_a_late_success_can_be_recorded_for_a_dead_event(database: str) -> None:
    query(database, "SELECT outboxd.outbox_publish('order.placed', 'order', '1', '{}')")
    query(database, "UPDATE outboxd.outbox_events SET dead_at = now()")

    query(database, "UPDATE outboxd.outbox_events SET published_at = now()")


def test_outbox_publish_finds_its_tables_whatever_the_search_path(bare_database: str) -> None:
    of_outboxd(bare_database, "events").up()

    [(made,)] = query(
        bare_database,
        "SELECT events.outbox_publish('order.placed', 'order', '1', %s, '{\"a\": \"b\"}')",
        '{"total_minor": 1}',
    )

    assert query(
        bare_database,
        "SELECT id, event_type, aggregate_type, aggregate_id, payload, headers, attempts"
        "  FROM events.outbox_events",
    ) == [(made, "order.placed", "order", "1", {"total_minor": 1}, {"a": "b"}, 0)]


def test_outbox_publish_keeps_the_id_it_is_given(database: str) -> None:
    given = "01890a5d-ac96-774b-bcce-b302099a8057"

    query(
        database,
        "SELECT outboxd.outbox_publish('order.placed', 'order', '1', '{}', event_id => %s)",
        given,
    )

    assert query(database, "SELECT id::text FROM outboxd.outbox_events") == [(given,)]


def test_ordered_publishing_locks_its_aggregate_until_commit(database: str) -> None:
    free = "SELECT pg_try_advisory_xact_lock(hashtextextended('order' || chr(31) || %s, 0))"
    with closing(psycopg.connect(database)) as producer:
        producer.execute(
            "SELECT outboxd.outbox_publish('order.placed', 'order', '1', '{}', ordered => true)"
        )
        assert query(database, free, "1") == [(False,)]
        assert query(database, free, "2") == [(True,)]
        producer.commit()

    assert query(database, free, "1") == [(True,)]


def test_an_order_is_made_once_for_a_checkout(shop_database: str) -> None:
    order = (
        "INSERT INTO shop.orders (id, customer_id, currency, total_minor, idempotency_key) "
        "VALUES (gen_random_uuid(), '8d7bb1a6-2c0e-4b4f-9f3a-1f0f0c9f5a11', 'EUR', 1999, 'key-1')"
    )
    query(shop_database, order)

    with pytest.raises(psycopg.errors.UniqueViolation):
        query(shop_database, order)


@pytest.mark.parametrize(
    "values",
    ["'cancelled', 'EUR', -1", "'lost', 'EUR', 1", "'pending', 'eur', 1", "'paid', 'EUR', 1"],
    ids=["negative total", "unknown status", "unknown currency", "paid at no time"],
)
def test_an_impossible_order_is_refused(shop_database: str, values: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        query(
            shop_database,
            "INSERT INTO shop.orders (id, customer_id, idempotency_key, status, currency, "
            f"total_minor) VALUES (gen_random_uuid(), gen_random_uuid(), 'c', {values})",
        )


def test_the_ledger_shows_what_was_done_twice(shop_database: str) -> None:
    effect = "INSERT INTO shop.effects (event_id, handler) VALUES (%s, 'payment.mark_paid')"
    event = "01890a5d-ac96-774b-bcce-b302099a8057"
    for statement in (effect, effect):
        query(shop_database, statement, event)

    assert query(shop_database, "SELECT count(*) FROM shop.effects") == [(2,)]
