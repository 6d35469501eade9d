"""Each thing that can be wrong in PostgreSQL is found."""

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from outboxd.adapters.live import questions
from outboxd.core.live import database as rules
from outboxd.core.live.finding import Code
from outboxd.demo import postgres as embedded
from outboxd.resources import project_directory
from tests.cli.conftest import Cli
from tests.cli.live_scene import Live
from tests.system.pgbouncer import pgbouncer

_numbers = count(1)


@pytest.fixture
def live(cli: Cli, folder: Path, database: str) -> Live:
    return Live(cli, folder, database, "http://nobody.asked")


def codes(live: Live) -> set[str]:
    return {each.code for each in live.in_database()}


STAGED = [
    (
        "DELETE FROM _yoyo_migration WHERE migration_id = '0007_wake_up'",
        {Code.SCHEMA_BEHIND},
    ),
    (
        "INSERT INTO _yoyo_migration (migration_hash, migration_id) VALUES ('x', '9999_later')",
        {Code.SCHEMA_AHEAD},
    ),
    ("DROP TABLE suspects", {Code.TABLE_MISSING}),
    ("ALTER TABLE outbox_events SET UNLOGGED", {Code.TABLE_UNLOGGED}),
    (
        "ALTER TABLE suspects RENAME TO kept; CREATE VIEW suspects AS SELECT * FROM kept",
        {Code.TABLE_KIND},
    ),
    ("DROP INDEX outbox_events_pending", {Code.INDEX_MISSING}),
    (
        "UPDATE pg_index SET indisvalid = false "
        "WHERE indexrelid = 'outboxd.outbox_events_dead'::regclass",
        {Code.INDEX_INVALID},
    ),
    ("CREATE INDEX mine ON outbox_events (occurred_at)", {Code.INDEX_EXTRA}),
    ("DELETE FROM outbox_buckets WHERE bucket = 7", {Code.BUCKETS_INCOMPLETE}),
    ("ALTER TABLE outbox_events ALTER COLUMN seq SET CACHE 20", {Code.SEQUENCE_CACHE}),
    ("ALTER TABLE outbox_events SET (autovacuum_enabled = off)", {Code.AUTOVACUUM_OFF}),
    (
        "ALTER TABLE outbox_events RESET (autovacuum_vacuum_scale_factor)",
        {Code.AUTOVACUUM_SETTINGS},
    ),
    (
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = "
        "serializable', current_database()); END $$",
        {Code.ISOLATION},
    ),
    (
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', "
        "current_database()); END $$",
        {Code.SERVER_READ_ONLY},
    ),
    (
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = ''1s''', "
        "current_database()); END $$",
        {Code.TIMEOUT_SHORT},
    ),
]


@pytest.mark.parametrize(("statement", "expected"), STAGED, ids=[sql[:40] for sql, _ in STAGED])
def test_each_difference_is_found_and_nothing_else(
    live: Live, statement: str, expected: set[Code]
) -> None:
    live.sql(statement)

    assert codes(live) == {Code.SERVER_NOT_DURABLE} | expected  # of the tests' own server


def test_wake_ups_without_the_trigger_are_found(live: Live) -> None:
    live.configure(relay="wake_up = true")
    disabled = codes(live)
    live.sql("ALTER TABLE outbox_events ENABLE TRIGGER outbox_events_wake_sleepers")

    assert Code.WAKE_UP_DISABLED in disabled
    assert Code.WAKE_UP_DISABLED not in codes(live)


def test_a_direct_url_to_another_database_is_found(live: Live) -> None:
    elsewhere = make_conninfo(live.url, dbname="postgres")
    live.sql("ALTER TABLE outbox_events ENABLE TRIGGER outbox_events_wake_sleepers")
    live.configure(relay="wake_up = true", database=f'direct_url = "{live.url}"')
    same = codes(live)
    live.configure(relay="wake_up = true", database=f'direct_url = "{elsewhere}"')

    assert codes(live) - same == {Code.DIRECT_ELSEWHERE}


def test_an_old_transaction_is_found_by_who_and_not_by_what(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "OLD_SECONDS", 0.0)
    with closing(psycopg.connect(live.url)) as idle:
        idle.execute("SELECT 'a secret'")
        (found,) = [
            each
            for each in live.in_database()
            if each.subject.startswith(f"process {idle.info.backend_pid} of postgres on test_")
        ]

    assert found.code == Code.TRANSACTION_OLD
    assert "secret" not in str(found)


def test_a_forgotten_replication_slot_is_found(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "HELD_BYTES", 0)
    lean = {**embedded.LEAN, "wal_level": "replica", "max_wal_senders": "2"}
    monkeypatch.setattr(embedded, "LEAN", lean)
    with embedded.embedded_postgres(durable=False) as server:
        live = Live(cli, folder, server.create_database("shop"), "http://nobody.asked")
        live.sql("SELECT pg_create_physical_replication_slot('forgotten', true)")
        found = live.in_database()

    assert [each.subject for each in found if each.code == Code.SLOT_HOLDS_WAL] == [
        "replication slot forgotten"
    ]


@pytest.fixture
def daemon_role(live: Live) -> Iterator[str]:
    """The role that docs/database-roles.md makes for the daemon, under a name of this test's own;
    the configuration connects as it."""
    role = f"outboxd_daemon_live_{next(_numbers)}"
    text = (project_directory() / "docs" / "database-roles.md").read_text(encoding="utf-8")
    (block,) = [
        block
        for block in re.findall(r"```sql\n(.*?)```", text, flags=re.DOTALL)
        if "CREATE ROLE outboxd_daemon" in block
    ]
    live.sql(block.replace("outboxd_daemon", role))
    live.configure(url=make_conninfo(live.url, user=role), relay="wake_up = true")
    yield role
    live.sql(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_the_documented_grants_are_enough(live: Live, daemon_role: str) -> None:
    found = codes(live)

    assert Code.GRANT_MISSING not in found
    assert Code.NOT_LOOKED_AT not in found
    assert Code.NOT_VISIBLE in found


@pytest.mark.parametrize(
    ("revoke", "told"),
    [
        ("USAGE ON SCHEMA outboxd", "USAGE on schema outboxd"),
        ("DELETE ON outboxd.outbox_events", "DELETE on outboxd.outbox_events"),
        ("UPDATE (dead_at) ON outboxd.outbox_events", "UPDATE (dead_at) on outboxd.outbox_events"),
        ("INSERT ON outboxd.processed_events", "INSERT on outboxd.processed_events"),
        ("SELECT ON outboxd.outbox_buckets", "SELECT on outboxd.outbox_buckets"),
        ("UPDATE ON outboxd.outbox_sleepers", "UPDATE on outboxd.outbox_sleepers"),
    ],
)
def test_a_grant_that_is_missing_is_named(
    live: Live, daemon_role: str, revoke: str, told: str
) -> None:
    live.sql(f"REVOKE {revoke} FROM {daemon_role}")

    missing = [each.found for each in live.in_database() if each.code == Code.GRANT_MISSING]

    assert missing == [f"it has not {told}"]


def test_a_version_that_may_not_be_read_is_told(live: Live, daemon_role: str) -> None:
    live.sql(f"REVOKE SELECT ON outboxd._yoyo_migration FROM {daemon_role}")

    assert {Code.GRANT_MISSING, Code.NOT_LOOKED_AT} <= codes(live)


def test_a_limit_of_connections_is_told_to_whom_it_applies(live: Live, daemon_role: str) -> None:
    """To the daemon's role; superusers are exempt (PostgreSQL, CREATE DATABASE)."""
    live.sql(f"ALTER ROLE {daemon_role} CONNECTION LIMIT 9")

    assert Code.CONNECTIONS_TOO_FEW in codes(live)


def test_row_security_is_told_to_whom_it_applies(live: Live, daemon_role: str) -> None:
    live.sql("ALTER TABLE outbox_events ENABLE ROW LEVEL SECURITY")
    applies = codes(live)
    live.configure()

    assert Code.TABLE_ROW_SECURITY in applies
    assert Code.TABLE_ROW_SECURITY not in codes(live)


def test_handlers_that_could_not_publish_are_a_note(live: Live, daemon_role: str) -> None:
    live.sql(
        "REVOKE INSERT (id, event_type, aggregate_type, aggregate_id, payload, headers, "
        f"occurred_at) ON outboxd.outbox_events FROM {daemon_role}"
    )

    assert Code.GRANT_PUBLISHING in codes(live)


@pytest.mark.packages
@pytest.mark.parametrize("mode", ["transaction", "session", "statement"])
def test_a_pooler_is_recognised_by_what_it_does(live: Live, mode: str) -> None:
    live.sql("ALTER TABLE outbox_events ENABLE TRIGGER outbox_events_wake_sleepers")
    expected = {
        "transaction": {Code.POOLER, Code.WAKE_UP_POOLED},
        "session": set(),
        "statement": {Code.POOLER_STATEMENT, Code.WAKE_UP_POOLED},
    }[mode]
    with pgbouncer(live.url, pool_size=4, more=f"pool_mode = {mode}") as pooler:
        live.configure(url=pooler.pooled(live.url), relay="wake_up = true")
        pooled = codes(live)
        live.configure(
            url=pooler.pooled(live.url),
            relay="wake_up = true",
            database=f'direct_url = "{live.url}"',
        )
        past_it = codes(live)

    named = {Code.POOLER, Code.POOLER_STATEMENT, Code.WAKE_UP_POOLED}
    assert pooled & named == expected
    assert Code.NOT_LOOKED_AT not in pooled
    assert past_it & named == expected - {Code.WAKE_UP_POOLED}
    assert Code.DIRECT_ELSEWHERE not in past_it


@pytest.mark.packages
def test_a_pooler_with_one_connection_is_recognised_and_not_waited_for(live: Live) -> None:
    """To hold the only one and to ask for another would wait for itself."""
    with pgbouncer(live.url, pool_size=1, more="pool_mode = transaction") as pooler:
        live.configure(url=pooler.pooled(live.url))

        found = {finding.code for finding in live.in_database(seconds=3.0)}

    assert Code.POOLER in found
    assert Code.NOT_LOOKED_AT not in found
