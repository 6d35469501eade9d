"""The PostgreSQL for a trial: one command, one address, and nothing of it left."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from outboxd.cli.localpostgres import default_directory, url_of
from outboxd.core.exit_codes import ExitCode
from tests.cli.conftest import Cli


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary directory: short, and open to the user that the server of root runs as."""
    folder = Path(tempfile.mkdtemp(prefix="localpg-"))
    folder.chmod(0o755)
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@contextmanager
def local_postgres(*argv: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the URL that it prints; ended as by Ctrl-C unless it has ended."""
    with subprocess.Popen(
        [sys.executable, "-m", "outboxd", "localpostgres", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(30)


def ask(url: str, query: str) -> object:
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        row = connection.execute(query.encode()).fetchone()
        return None if row is None else row[0]


def tell(url: str, statement: str) -> None:
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(statement.encode())


def postmaster_of(folder: Path) -> int:
    return int((folder / "data" / "postmaster.pid").read_text().split()[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_serves_at_the_address_that_it_prints_until_it_is_stopped(
    number: signal.Signals, parent: Path
) -> None:
    with local_postgres() as (process, url):
        assert url == url_of(default_directory(os.environ))
        assert ask(url, "SELECT 42") == 42
        process.send_signal(number)
        code = process.wait(30)

    assert code == ExitCode.OK
    assert list(parent.iterdir()) == []


def test_nobody_else_can_reach_it(parent: Path) -> None:
    """Every client is trusted, so the folder of the socket is the lock."""
    with local_postgres() as (_, url):
        folder = default_directory(os.environ)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert ask(url, "SHOW listen_addresses") == ""


def test_a_second_one_is_refused_and_the_first_goes_on(parent: Path, cli: Cli) -> None:
    with local_postgres() as (_, url):
        code, out, err = cli("localpostgres")

        assert (code, out) == (ExitCode.UNEXPECTED, "")
        assert err.startswith(f"outboxd: one runs in {default_directory(os.environ)} already: ")
        assert ask(url, "SELECT 42") == 42


def test_what_a_killed_one_left_is_cleared_away_by_the_next(parent: Path) -> None:
    with local_postgres() as (process, url):
        tell(url, "CREATE TABLE traces ()")
        process.kill()

    with local_postgres() as (_, url):
        assert ask(url, "SELECT to_regclass('traces')") is None

    assert list(parent.iterdir()) == []


def test_a_directory_of_its_own_keeps_the_data(parent: Path) -> None:
    kept = str(parent / "kept")
    for number in (1, 2):
        with local_postgres("--directory", kept) as (_, url):
            tell(url, "CREATE TABLE IF NOT EXISTS runs (number int)")
            tell(url, f"INSERT INTO runs VALUES ({number})")

    with local_postgres("--directory", kept) as (_, url):
        assert ask(url, "SELECT sum(number) FROM runs") == 3


def test_a_directory_keeps_the_data_when_the_command_is_killed(parent: Path) -> None:
    kept = str(parent / "kept")
    with local_postgres("--directory", kept) as (process, url):
        tell(url, "CREATE TABLE runs AS SELECT 7 AS number")
        process.kill()

    with local_postgres("--directory", kept) as (_, url):
        assert ask(url, "SELECT number FROM runs") == 7


def test_an_empty_directory_of_everybody_is_closed(parent: Path) -> None:
    folder = parent / "open"
    folder.mkdir()
    folder.chmod(0o755)

    with local_postgres("--directory", str(folder)):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_directory_with_other_things_in_it_is_left_alone(parent: Path, cli: Cli) -> None:
    folder = parent / "thesis"
    folder.mkdir(mode=0o755)
    (folder / "chapter-1").touch()

    code, out, err = cli("localpostgres", "--directory", str(folder))

    assert (code, out) == (ExitCode.UNEXPECTED, "")
    assert err == f"outboxd: {folder} has other things in it: name an empty directory\n"
    assert [path.name for path in folder.iterdir()] == ["chapter-1"]
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_link_that_was_laid_for_us_is_not_followed(parent: Path, cli: Cli) -> None:
    (parent / "theirs").mkdir()
    default_directory(os.environ).symlink_to(parent / "theirs")

    code, _, err = cli("localpostgres")

    assert code == ExitCode.UNEXPECTED
    assert "is a link, or another user's" in err
    assert list((parent / "theirs").iterdir()) == []


def test_a_file_in_its_place_is_one_line(parent: Path, cli: Cli) -> None:
    default_directory(os.environ).touch()

    code, _, err = cli("localpostgres")

    assert code == ExitCode.UNEXPECTED
    assert err == f"outboxd: cannot use {default_directory(os.environ)}: File exists\n"


def test_without_programs_it_says_how_to_get_them(
    parent: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTBOXD_PG_BIN", str(parent))

    code, _, err = cli("localpostgres")

    assert code == ExitCode.UNEXPECTED
    assert "set OUTBOXD_PG_BIN to the bin folder" in err
    assert list(parent.iterdir()) == []


def test_the_end_of_the_server_is_the_end_of_the_command(parent: Path) -> None:
    with local_postgres() as (process, _):
        os.kill(postmaster_of(default_directory(os.environ)), signal.SIGQUIT)
        code = process.wait(30)
        assert process.stderr is not None
        err = process.stderr.read()

    assert code == ExitCode.UNEXPECTED
    assert err == "outboxd: the PostgreSQL has ended by itself: start it again\n"
    assert list(parent.iterdir()) == []
