"""Publishing by plain SQL, as psql and programs in other languages do."""

import json
import os
import subprocess
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from outboxd import PublishRefused, publish
from outboxd.adapters.migrations import Migrations
from outboxd.core.events import NewEvent
from outboxd.demo.postgres_binaries import find_binaries
from outboxd.producer import MAX_BYTES, MAX_DEPTH
from outboxd.resources import project_directory
from tests.producer_scene import payloads, rows, stored

PUBLISH = "SELECT outboxd.outbox_publish(%s, %s, %s, %s::text::jsonb)"


def script(dsn: str, text: str) -> None:
    """Several statements as one text without parameters: what psql sends for `-c`."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(text.encode(), prepare=False)


CHECKOUT = """
    BEGIN;
    CREATE TABLE orders (id text, status text);
    INSERT INTO orders VALUES ('42', 'paid');
    SELECT outboxd.outbox_publish('order.paid', 'order', '42', '{"total": 4200}');
    SELECT outboxd.outbox_publish(
        event_type => 'order.paid', aggregate_type => 'order', aggregate_id => '43',
        payload => jsonb_build_object('total', 1), headers => '{"tenant": "7"}', ordered => true
    );
    SELECT outboxd.outbox_enqueue('mail.send', '{"to": "ada"}');
    SELECT outboxd.outbox_enqueue(
        'mail.send', '{"to": "bob"}', key => 'customer-7', ordered => true
    );
"""


def test_a_transaction_in_sql_publishes_with_its_commit(database: str) -> None:
    script(database, CHECKOUT + "COMMIT")

    *events, alone, keyed = stored(database)
    assert [row[1:] for row in events] == [
        ("order.paid", "order", "42", {"total": 4200}, {}),
        ("order.paid", "order", "43", {"total": 1}, {"tenant": "7"}),
    ]
    assert alone[1:] == ("mail.send", "job", str(alone[0]), {"to": "ada"}, {})
    assert keyed[1:] == ("mail.send", "job", "customer-7", {"to": "bob"}, {})


def test_a_transaction_in_sql_that_is_rolled_back_publishes_nothing(database: str) -> None:
    script(database, CHECKOUT + "ROLLBACK")

    assert stored(database) == []


def test_psql_publishes(database: str, tmp_path: Path) -> None:
    file = tmp_path / "checkout.sql"
    file.write_text(CHECKOUT + "COMMIT;")

    subprocess.run(
        [find_binaries(None) / "psql", "-X", "-v", "ON_ERROR_STOP=1", "-f", file, database],
        check=True,
        capture_output=True,
        env={**os.environ, "PGOPTIONS": ""},
    )

    assert len(stored(database)) == 4


REFUSED = {
    "no type": ("", "order", "1", "{}", "event_type has 1 to 128 characters, and this is ''"),
    "null type": (None, "order", "1", "{}", "event_type .* NULL"),
    "long type": ("x" * 129, "order", "1", "{}", "event_type has 1 to 128"),
    "blank": ("order placed", "order", "1", "{}", "white space or a control character"),
    "no-break space": ("order\u00a0placed", "order", "1", "{}", "white space or a control"),
    "no kind": ("t", "", "1", "{}", "aggregate_type has 1 to 255 characters"),
    "no id": ("t", "order", None, "{}", "aggregate_id has 1 to 255 characters, and this is NULL"),
    "control": ("t", "order", "a\x07", "{}", "a character that messages cannot carry"),
    "not a character": ("t", "order", "a\uffff", "{}", "a character that messages cannot carry"),
    "null payload": ("t", "order", "1", None, "payload is NULL"),
    "long": ("t", "order", "1", json.dumps("é" * 524_288), r"take 10\d+ bytes, and the limit is"),
    "spread": ("t", "order", "1", json.dumps([0] * 350_000), "bytes, and the limit is 1048576"),
    "deep": ("t", "order", "1", "[" * 257 + "]" * 257, "nests more than 256"),
    "deep objects": ("t", "order", "1", '{"a":' * 257 + "1" + "}" * 257, "nests more than 256"),
}


@pytest.mark.parametrize(
    ("event_type", "kind", "key", "payload", "complaint"), REFUSED.values(), ids=REFUSED
)
def test_what_can_never_be_published_is_refused_there_too(
    database: str, event_type: str, kind: str, key: str, payload: str, complaint: str
) -> None:
    with pytest.raises(
        psycopg.errors.InvalidParameterValue, match=f"never be published.*{complaint}"
    ):
        rows(database, PUBLISH, event_type, kind, key, payload)
    assert stored(database) == []


@pytest.mark.parametrize("headers", ["[]", '{"a": 1}', '"text"', None, '{"a": ["b"]}'])
def test_headers_are_an_object_of_texts(database: str, headers: str) -> None:
    call = "SELECT outboxd.outbox_publish('t', 'order', '1', '{}', %s::text::jsonb)"
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="headers is an object of texts"):
        rows(database, call, headers)


@pytest.mark.parametrize(
    "payload",
    [
        "null",
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
        json.dumps([[{}]] * 1000),
        json.dumps("[{" * 1000),
        json.dumps("x" * (MAX_BYTES - 2000)),
    ],
    ids=["null", "deep", "broad", "text", "long"],
)
def test_what_only_looks_dangerous_is_stored(database: str, payload: str) -> None:
    rows(database, PUBLISH, "order.placed", "order", "1 é\t", payload)

    assert payloads(database) == [json.loads(payload)]


@pytest.mark.parametrize(
    "payload", ["[" * 256 + "1" + "]" * 256, "[" * 257 + "]" * 257, '{"a":' * 256 + "1" + "}" * 256]
)
def test_both_languages_draw_the_line_at_the_same_depth(database: str, payload: str) -> None:
    def in_python() -> bool:
        with psycopg.connect(database) as connection:
            try:
                publish(connection, NewEvent("t", "order", "1", json.loads(payload)))
            except PublishRefused:
                return False
            return True

    def in_sql() -> bool:
        try:
            rows(database, PUBLISH, "t", "order", "1", payload)
        except psycopg.errors.InvalidParameterValue:
            return False
        return True

    assert in_python() == in_sql()


def test_a_lower_limit_may_be_set_for_a_database(database: str) -> None:
    call = "SELECT outboxd.outbox_publish('t', 'order', '1', to_jsonb(repeat('x', 262144)))"
    with psycopg.connect(database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET outboxd.max_bytes = 262144'.encode())

    with pytest.raises(psycopg.errors.InvalidParameterValue, match="the limit is 262144"):
        rows(database, call)


def test_the_error_says_what_to_do(database: str) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        rows(database, PUBLISH, "t", "order", "1", json.dumps("x" * MAX_BYTES))

    assert refusal.value.diag.message_hint == (
        "Store the payload elsewhere and publish a reference to it."
    )


@pytest.mark.parametrize("schema", ["events", "public", "odd_name_2"])
def test_it_works_in_any_schema_and_for_any_search_path(bare_database: str, schema: str) -> None:
    Migrations(bare_database, schema, project_directory() / "migrations" / "outboxd").up()

    with psycopg.connect(bare_database) as connection:
        connection.execute("SET search_path = pg_catalog")
        row = connection.execute(
            f"SELECT {schema}.outbox_publish('t', 'order', '1', '{{}}'), "
            f"{schema}.outbox_enqueue('mail.send', '1')".encode()
        ).fetchone()

    assert row is not None
    assert all(isinstance(made, UUID) for made in row)
    assert rows(bare_database, f"SELECT count(*) FROM {schema}.outbox_events") == [(2,)]


def test_a_function_call_in_autocommit_is_one_transaction_with_its_statement(
    database: str,
) -> None:
    """What SQL cannot refuse, it can be used for: a data-modifying WITH publishes what it did."""
    rows(database, "CREATE TABLE orders AS SELECT n, false AS paid FROM generate_series(1, 3) n")
    rows(
        database,
        """
        WITH changed AS (UPDATE orders SET paid = true WHERE n > 1 RETURNING n)
        SELECT outboxd.outbox_publish('order.paid', 'order', n::text, to_jsonb(n)) FROM changed
        """,
    )

    assert sorted(payloads(database)) == [2, 3]


def test_a_trigger_may_publish_for_programs_that_cannot_be_changed(database: str) -> None:
    script(
        database,
        """
        CREATE TABLE orders (id text, status text);
        CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM outboxd.outbox_publish('order.' || NEW.status, 'order', NEW.id, to_jsonb(NEW));
            RETURN NULL;
        END $$;
        CREATE TRIGGER tell AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION tell();
        INSERT INTO orders VALUES ('42', 'placed');
        UPDATE orders SET status = 'paid';
        """,
    )

    assert [row[1] for row in stored(database)] == ["order.placed", "order.paid"]


def test_an_older_version_has_its_function_back(bare_database: str) -> None:
    migrations = Migrations(bare_database, "outboxd", project_directory() / "migrations/outboxd")
    names = migrations.up()
    newer = len(names) - names.index("0005_publish_checks")

    migrations.down(newer)
    rows(bare_database, PUBLISH, "with blanks", "order", "1", "{}")
    functions = rows(bare_database, "SELECT proname FROM pg_proc WHERE proname ~ '^outbox_'")
    migrations.up()

    assert functions == [("outbox_publish",)]
    assert len(stored(bare_database)) == 1
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        rows(bare_database, PUBLISH, "with blanks", "order", "1", "{}")
