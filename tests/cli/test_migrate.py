"""outboxd's tables come and go by command, and never go unasked."""

import json
from pathlib import Path

import psycopg
import pytest

from outboxd.core.exit_codes import ExitCode
from outboxd.resources import project_directory
from tests.cli.conftest import Cli

NAMES = sorted(
    path.stem
    for path in (project_directory() / "migrations" / "outboxd").glob("*.sql")
    if not path.name.endswith(".rollback.sql")
)


def configure(folder: Path, url: str) -> None:
    (folder / "outboxd.toml").write_text(
        f"""
        [database]
        url = "{url}"
        schema = "box"
        [queues.orders]
        [[queues.orders.handlers]]
        event = "*"
        handler = "shop:ship"
        name = "ship"
        """
    )


@pytest.fixture
def url(folder: Path, bare_database: str) -> str:
    """The configured database, empty."""
    configure(folder, bare_database)
    return bare_database


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'box'")
        return {name for (name,) in rows}


def test_up_is_the_default_and_can_be_repeated(cli: Cli, url: str) -> None:
    assert cli("migrate") == (0, "".join(f"applied {name}\n" for name in NAMES), "")
    assert "outbox_events" in tables(url)
    assert cli("migrate", "up") == (0, "nothing to do: up to date\n", "")


def test_the_status_lists_every_migration(cli: Cli, url: str) -> None:
    assert cli("migrate", "status").out == "".join(f"missing  {name}\n" for name in NAMES)
    cli("migrate")
    assert cli("migrate", "status").out == "".join(f"applied  {name}\n" for name in NAMES)


def test_json_is_for_programs(cli: Cli, url: str) -> None:
    assert json.loads(cli("migrate", "--json").out) == {"applied": NAMES}
    assert json.loads(cli("migrate", "status", "--json").out)["migrations"][0] == {
        "name": NAMES[0],
        "applied": True,
        "unknown": False,
    }
    assert json.loads(cli("migrate", "down", "--yes", "--json").out) == {"rolled_back": NAMES[-1:]}


def test_down_is_not_done_unasked(cli: Cli, url: str) -> None:
    cli("migrate")

    code, out, err = cli("migrate", "down")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err == (
        f"outboxd: rolling back {NAMES[-1]} in schema box drops what they made, with its data: "
        "nobody to ask, for standard input is no terminal; give --yes\n"
    )
    assert "missing" not in cli("migrate", "status").out


def test_down_goes_all_the_way(cli: Cli, url: str) -> None:
    cli("migrate")

    code, out, _ = cli("migrate", "down", "--count", "99", "--yes")

    assert code == ExitCode.OK
    assert out == "".join(f"rolled back {name}\n" for name in reversed(NAMES))
    assert "outbox_events" not in tables(url)
    assert cli("migrate", "down").out == "nothing to do: nothing is applied\n"


def test_a_database_that_is_away_is_one_line_without_the_password(
    cli: Cli, folder: Path, unused_port: int
) -> None:
    configure(folder, f"postgresql://me:hunter2@127.0.0.1:{unused_port}/shop")

    code, out, err = cli("migrate", "status")

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err.count("\n") == 1
    assert "Connection refused" in err
    assert "hunter2" not in err


def test_a_configuration_without_a_database_cannot_be_migrated(cli: Cli, folder: Path) -> None:
    configure(folder, "postgresql://h/d")
    text = (folder / "outboxd.toml").read_text()
    start = text.index("[queues.orders]")
    (folder / "outboxd.toml").write_text(f'{text[start:]}inbox = "off"')

    assert cli("migrate") == (
        ExitCode.INVALID_CONFIGURATION,
        "",
        "outboxd: [database]: missing from the configuration; this command needs it\n",
    )
