"""The grants of docs/database-roles.md: each role can do its work, and not more."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.errors import InsufficientPrivilege

from outboxd.adapters.migrations import Migrations, SchemaMismatch
from outboxd.resources import project_directory

ROLES = ("outboxd_owner", "shop_producer", "outboxd_daemon", "outboxd_operator")
_numbers = count(1)


@dataclass(frozen=True)
class Roles:
    dsn: str
    suffix: str

    def dsn_of(self, role: str) -> str:
        return make_conninfo(self.dsn, user=f"{role}{self.suffix}")

    def refused(self, role: str, statements: list[str]) -> list[str]:
        """Those that the role may not execute; each is tried and taken back."""
        refusals = []
        with closing(psycopg.connect(self.dsn_of(role))) as connection:
            connection.execute("SET search_path = outboxd")
            connection.commit()
            for statement in statements:
                try:
                    connection.execute(statement.encode())
                except InsufficientPrivilege:
                    refusals.append(statement)
                finally:
                    connection.rollback()
        return refusals


@pytest.fixture
def roles(bare_database: str) -> Iterator[Roles]:
    """The document's roles under names of this test's own, on a database that its owner made."""
    suffix = f"_{next(_numbers)}"
    text = (project_directory() / "docs" / "database-roles.md").read_text(encoding="utf-8")
    owner_block, *other_blocks = re.findall(r"```sql\n(.*?)```", text, flags=re.DOTALL)
    with closing(psycopg.connect(bare_database, autocommit=True)) as connection:

        def run(block: str) -> None:
            block = re.sub(rf"\b({'|'.join(ROLES)})\b", rf"\1{suffix}", block)
            block = block.replace("DATABASE shop", f'DATABASE "{connection.info.dbname}"')
            connection.execute(block.encode())

        run(owner_block)
        made = Roles(bare_database, suffix)
        migrations = project_directory() / "migrations" / "outboxd"
        Migrations(made.dsn_of("outboxd_owner"), "outboxd", migrations).up()
        for block in other_blocks:
            run(block)
        yield made
        for role in ROLES:
            connection.execute(f'DROP OWNED BY "{role}{suffix}" CASCADE'.encode())
            connection.execute(f'DROP ROLE "{role}{suffix}"'.encode())


PUBLISHING = [
    "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload) "
    "VALUES ('order.placed', 'order', '1', '{}')",
    "INSERT INTO outbox_events "
    "(id, event_type, aggregate_type, aggregate_id, payload, headers, occurred_at) "
    "VALUES (gen_random_uuid(), 'order.placed', 'order', '1', '{}', '{}', clock_timestamp())",
    "SELECT outbox_publish('order.placed', 'order', '1', '{}', ordered => true)",
]

DAEMONS_WORK = [
    *PUBLISHING,
    "UPDATE outbox_buckets b SET owner = gen_random_uuid(), epoch = epoch + 1, "
    "lease_until = clock_timestamp() FROM (SELECT bucket FROM outbox_buckets "
    "WHERE owner IS NULL LIMIT 9 FOR UPDATE SKIP LOCKED) f WHERE b.bucket = f.bucket "
    "RETURNING b.bucket, b.epoch",
    "INSERT INTO outbox_relays (id, host, pid) VALUES (gen_random_uuid(), 'h', 1) "
    "ON CONFLICT (id) DO UPDATE SET seen = clock_timestamp()",
    "DELETE FROM outbox_relays WHERE seen < clock_timestamp()",
    "INSERT INTO outbox_sleepers (relay, asleep_until) VALUES (gen_random_uuid(), now()) "
    "ON CONFLICT (relay) DO UPDATE SET asleep_until = excluded.asleep_until",
    "DELETE FROM outbox_sleepers WHERE asleep_until < clock_timestamp()",
    "SELECT * FROM outbox_events",
    "UPDATE outbox_events SET published_at = now(), last_error = NULL WHERE seq = 1",
    "UPDATE outbox_events SET attempts = 1, next_attempt_at = now(), last_error = 'e', "
    "dead_at = now(), delivered_to = '{a}' WHERE seq = 1",
    "DELETE FROM outbox_events WHERE seq = 1",
    "INSERT INTO processed_events (event_id, handler) VALUES (gen_random_uuid(), 'h') "
    "ON CONFLICT DO NOTHING RETURNING 1",
    "DELETE FROM processed_events WHERE processed_at < now()",
    "INSERT INTO handler_failures (event_id, handler, message_id) "
    "VALUES (gen_random_uuid(), 'h', 'm') "
    "ON CONFLICT (event_id, handler) DO UPDATE SET attempts = handler_failures.attempts + 1",
    "DELETE FROM handler_failures WHERE handler = 'h'",
    "INSERT INTO suspects (queue, message_id, reason) VALUES ('q', 'm', 'crash') "
    "ON CONFLICT (queue, message_id) DO UPDATE SET crashes_alone = suspects.crashes_alone + 1",
    "DELETE FROM suspects WHERE queue = 'q'",
    "INSERT INTO inbox_polls (queue, polled_at) VALUES ('q', now()) "
    "ON CONFLICT (queue) DO UPDATE SET polled_at = excluded.polled_at",
    "INSERT INTO inbox_gaps (queue, started_at, ended_at) VALUES ('q', now(), 'infinity')",
    "DELETE FROM inbox_gaps WHERE queue IN (SELECT queue FROM inbox_polls)",
]

DESTRUCTION = [
    "DROP TABLE outbox_events",
    "TRUNCATE outbox_events",
    "ALTER TABLE outbox_events ADD COLUMN x int",
    "CREATE TABLE outboxd.mine (x int)",
    "DELETE FROM outbox_buckets",
    "INSERT INTO outbox_buckets (bucket) VALUES (0)",
    "UPDATE outbox_events SET payload = '{}'",
    "UPDATE outbox_events SET seq = DEFAULT",
    "UPDATE processed_events SET handler = 'x'",
    "DELETE FROM _yoyo_migration",
]


def test_a_producer_publishes_and_sees_nothing(roles: Roles) -> None:
    beyond = [
        *DESTRUCTION,
        "SELECT id FROM outbox_events",
        "UPDATE outbox_events SET published_at = now()",
        "DELETE FROM outbox_events",
        "INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload, "
        "published_at) VALUES ('order.placed', 'order', '1', '{}', now())",
        "SELECT * FROM outbox_buckets",
        "SELECT * FROM processed_events",
        "INSERT INTO processed_events (event_id, handler) VALUES (gen_random_uuid(), 'h')",
    ]

    assert roles.refused("shop_producer", PUBLISHING) == []
    assert roles.refused("shop_producer", beyond) == beyond


def test_the_daemon_does_its_work_and_rewrites_nothing(roles: Roles) -> None:
    assert roles.refused("outboxd_daemon", DAEMONS_WORK) == []
    assert roles.refused("outboxd_daemon", DESTRUCTION) == DESTRUCTION


def test_an_operator_reads_everything_and_requeues(roles: Roles) -> None:
    work = [
        *(f"SELECT * FROM {table}" for table in ("outbox_events", "outbox_buckets", "suspects")),
        *(f"SELECT * FROM {table}" for table in ("processed_events", "handler_failures")),
        "UPDATE outbox_events SET dead_at = NULL, attempts = 0, next_attempt_at = NULL, "
        "published_at = NULL, last_error = NULL, delivered_to = NULL WHERE seq = 1",
        "DELETE FROM outbox_events WHERE seq = 1",
        "SELECT seq FROM outbox_events FOR UPDATE SKIP LOCKED",
        "INSERT INTO outbox_audit (operator, run, command, reason, selection, events, first_seq, "
        "last_seq, event_ids) "
        "VALUES ('kim', gen_random_uuid(), 'prune', NULL, '{}', 1, 1, 1, NULL)",
        "SELECT * FROM outbox_audit",
    ]
    beyond = [
        *DESTRUCTION,
        *PUBLISHING,
        "DELETE FROM processed_events",
        "DELETE FROM suspects",
        "INSERT INTO outbox_audit (role, operator, run, command, selection, events, first_seq, "
        "last_seq) VALUES ('somebody', 'kim', gen_random_uuid(), 'prune', '{}', 1, 1, 1)",
        "UPDATE outbox_audit SET operator = 'lee'",
        "DELETE FROM outbox_audit",
    ]

    assert roles.refused("outboxd_operator", work) == []
    assert roles.refused("outboxd_operator", beyond) == beyond


@pytest.mark.parametrize("role", ["outboxd_daemon", "outboxd_operator"])
def test_those_who_start_something_can_check_the_version(roles: Roles, role: str) -> None:
    migrations = project_directory() / "migrations" / "outboxd"

    Migrations(roles.dsn_of(role), "outboxd", migrations).check_version()


def test_a_role_that_may_not_check_the_version_is_told_where_to_look(roles: Roles) -> None:
    migrations = project_directory() / "migrations" / "outboxd"

    with pytest.raises(SchemaMismatch, match=r"docs/database-roles\.md"):
        Migrations(roles.dsn_of("shop_producer"), "outboxd", migrations).check_version()


def test_the_owner_of_an_existing_schema_needs_no_right_to_create_one(roles: Roles) -> None:
    with closing(psycopg.connect(roles.dsn, autocommit=True)) as connection:
        connection.execute(
            f'REVOKE CREATE ON DATABASE "{connection.info.dbname}" '
            f'FROM "outboxd_owner{roles.suffix}"'.encode()
        )
    owned = Migrations(
        roles.dsn_of("outboxd_owner"), "outboxd", project_directory() / "migrations" / "outboxd"
    )

    owned.down(3)
    owned.up()
