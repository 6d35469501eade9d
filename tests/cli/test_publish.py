"""One event by hand: stored, committed, told by its id."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from outboxd import NewEvent, publish
from outboxd.core.exit_codes import ExitCode
from tests.cli.conftest import Cli

EVENT = ("publish", "order.created", "--aggregate", "order:42:a")
KNOWN_ID = "018f4d1e-0000-7000-8000-000000000001"


def configure(folder: Path, url: str) -> None:
    (folder / "outboxd.toml").write_text(
        f"""
        [database]
        url = "{url}"
        [queues.orders]
        [[queues.orders.handlers]]
        event = "*"
        handler = "shop:ship"
        name = "ship"
        """
    )


@pytest.fixture
def url(folder: Path, database: str) -> str:
    """The configured database, with outboxd's tables."""
    configure(folder, database)
    return database


def stored(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT id, event_type, aggregate_type, aggregate_id, payload::text, headers "
            "FROM outboxd.outbox_events ORDER BY seq"
        ).fetchall()


def test_an_event_is_stored_and_its_id_printed(cli: Cli, url: str) -> None:
    code, out, err = cli(*EVENT, "--payload", '{"total": 1999}')

    assert (code, err) == (ExitCode.OK, "")
    assert stored(url) == [
        (UUID(out.strip()), "order.created", "order", "42:a", '{"total": 1999}', {})
    ]


def test_an_id_and_headers_may_be_given(cli: Cli, url: str) -> None:
    code, out, _ = cli(
        *EVENT,
        "--payload",
        "null",
        "--id",
        KNOWN_ID,
        "--header",
        "a=1",
        "--header",
        "b=x=y",
        "--json",
    )

    assert code == ExitCode.OK
    assert json.loads(out) == {"id": KNOWN_ID, "type": "order.created"}
    assert stored(url)[0][5] == {"a": "1", "b": "x=y"}


def test_an_ordered_event_waits_for_another_writer_of_its_aggregate(cli: Cli, url: str) -> None:
    with psycopg.connect(url) as other, ThreadPoolExecutor(1) as pool:
        publish(other, NewEvent("order.created", "order", "42:a", 1), ordered=True)
        second = pool.submit(cli, *EVENT, "--payload", "2", "--ordered")
        while not waiting(url):
            assert not second.done()
        other.commit()

    assert second.result().code == ExitCode.OK
    assert [row[4] for row in stored(url)] == ["1", "2"]


def waiting(url: str) -> bool:
    with psycopg.connect(url) as connection:
        locks = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        return connection.execute(locks).fetchone() is not None


def test_a_payload_may_come_from_standard_input(
    cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"name": "J\xc3\xbcrgen"}')))

    assert cli(*EVENT, "--payload", "-").code == ExitCode.OK
    assert stored(url)[0][4] == '{"name": "Jürgen"}'


def test_a_long_decimal_number_is_not_rounded(cli: Cli, url: str) -> None:
    payload = '{"amount": 123456789012345678901234567890.10}'

    assert cli(*EVENT, "--payload", payload).code == ExitCode.OK
    assert stored(url)[0][4] == payload


@pytest.mark.parametrize("payload", ["", "{", "{'a': 1}", "undefined"])
def test_a_payload_that_is_no_json_is_a_usage_error(cli: Cli, url: str, payload: str) -> None:
    code, out, err = cli(*EVENT, f"--payload={payload}")

    assert (code, out) == (ExitCode.USAGE, "")
    assert "outboxd publish: error: argument --payload: the payload is no JSON: " in err
    assert stored(url) == []


def test_a_payload_from_standard_input_that_is_no_json_is_one_line(
    cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{")))

    code, out, err = cli(*EVENT, "--payload", "-")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err.startswith("outboxd: the payload is no JSON: ")
    assert err.count("\n") == 1
    assert stored(url) == []


@pytest.mark.parametrize("kind", ["order created", "order.created\n", "a\tb", "a\x7fb", "x" * 129])
def test_an_event_type_that_no_glob_would_match_is_a_usage_error(cli: Cli, kind: str) -> None:
    code, _, err = cli("publish", kind, "--aggregate", "a:1", "--payload", "1")

    assert code == ExitCode.USAGE
    assert "argument TYPE: type " in err
    assert "no white space and no control character" in err or "1 to 128 characters" in err


@pytest.mark.parametrize(
    "argv",
    [
        ["publish"],
        ["publish", "t", "--payload", "1"],
        ["publish", "t", "--aggregate", "order", "--payload", "1"],
        ["publish", "t", "--aggregate", ":1", "--payload", "1"],
        ["publish", "", "--aggregate", "a:1", "--payload", "1"],
        [*EVENT, "--payload", "1", "--id", "42"],
        [*EVENT, "--payload", "1", "--header", "a"],
    ],
)
def test_a_wrong_argument_is_a_usage_error(cli: Cli, argv: list[str]) -> None:
    assert cli(*argv).code == ExitCode.USAGE


def test_a_database_without_tables_says_what_to_run(
    cli: Cli, folder: Path, bare_database: str
) -> None:
    configure(folder, bare_database)

    code, out, err = cli(*EVENT, "--payload", "1")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert "outboxd migrate" in err
    assert err.count("\n") == 1


def test_a_database_that_is_away_is_one_line(cli: Cli, folder: Path, unused_port: int) -> None:
    configure(folder, f"postgresql://me:hunter2@127.0.0.1:{unused_port}/shop")

    code, _, err = cli(*EVENT, "--payload", "1")

    assert code == ExitCode.UNEXPECTED
    assert err.startswith("outboxd: publishing: ")
    assert err.count("\n") == 1
    assert "hunter2" not in err
