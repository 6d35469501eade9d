"""The embedded server: it serves, restarts, and never outlives its owner."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from outboxd.demo import postgres_binaries
from outboxd.demo.postgres import EmbeddedPostgres, EmbeddedPostgresError, embedded_postgres
from outboxd.demo.postgres_binaries import ServerUser, find_binaries

OWNER = """
import sys, threading
from pathlib import Path
from outboxd.demo.postgres import embedded_postgres

def own():
    with embedded_postgres(Path(sys.argv[1]), durable=False) as server:
        print(server.pid, flush=True)
        sys.stdin.read()

if sys.argv[2] == "main thread":
    own()
else:
    threading.Thread(target=own).start()
"""


@pytest.fixture
def parent() -> Iterator[Path]:
    """A folder that the server's user may enter, unlike pytest's, and with a short path."""
    folder = Path(tempfile.mkdtemp(prefix="pg-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def ask(dsn: str, query: str) -> object:
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def tell(dsn: str, statement: str) -> None:
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:
        connection.execute(statement.encode())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


@contextmanager
def an_owner(parent: Path, where: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process that owns a server, and the server's pid."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(parent), where],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        yield process, pid
        process.kill()
    assert eventually(lambda: not alive(pid), seconds=5)


def test_a_server_and_its_folder_are_gone_after_use(parent: Path) -> None:
    with embedded_postgres(parent, durable=False) as server:
        pid = server.pid
        assert ask(server.dsn, "SELECT 42") == 42
        assert len(list(parent.iterdir())) == 1

    assert not alive(pid)
    assert list(parent.iterdir()) == []


def test_an_exception_of_the_user_removes_both_as_well(parent: Path) -> None:
    with (
        pytest.raises(psycopg.errors.SyntaxError),
        embedded_postgres(parent, durable=False) as server,
    ):
        tell(server.dsn, "no SQL")

    with pytest.raises(EmbeddedPostgresError, match="not running"):
        _ = server.pid
    assert list(parent.iterdir()) == []


@pytest.mark.parametrize("where", ["main thread", "worker thread"])
def test_a_killed_owner_takes_its_server_along(parent: Path, where: str) -> None:
    with an_owner(parent, where) as (owner, pid):
        assert alive(pid)
        owner.kill()
        owner.wait()

        assert eventually(lambda: not alive(pid), seconds=5)


def test_the_next_owner_removes_what_a_killed_one_left(parent: Path) -> None:
    with an_owner(parent, "main thread") as (owner, pid):
        [left_behind] = parent.iterdir()
        owner.kill()
        owner.wait()
        assert eventually(lambda: not alive(pid), seconds=5)

        with embedded_postgres(parent, durable=False):
            assert not left_behind.exists()
            assert len(list(parent.iterdir())) == 1


def test_the_next_owner_spares_the_folder_of_a_living_one(parent: Path) -> None:
    with an_owner(parent, "main thread") as (_, pid):
        [in_use] = parent.iterdir()

        with embedded_postgres(parent, durable=False):
            assert in_use.exists()
            assert alive(pid)


def test_a_server_outlives_the_thread_that_started_it(parent: Path) -> None:
    folder = parent / "server"
    folder.mkdir(mode=0o700)
    server = EmbeddedPostgres(folder, durable=False)
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()

    assert ask(server.dsn, "SELECT 42") == 42
    server.stop()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_keeps_what_was_committed(parent: Path, mode: str) -> None:
    with embedded_postgres(parent) as server:
        before = server.pid
        tell(server.dsn, "CREATE TABLE kept AS SELECT 42 AS answer")

        server.restart("fast" if mode == "fast" else "immediate")

        assert server.pid != before
        assert ask(server.dsn, "SELECT answer FROM kept") == 42


def test_a_stopped_server_refuses_connections_and_can_be_started_again(parent: Path) -> None:
    with embedded_postgres(parent, durable=False) as server:
        server.stop()
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.dsn)
        with pytest.raises(EmbeddedPostgresError, match="not running"):
            _ = server.pid

        server.start()
        assert ask(server.dsn, "SELECT 42") == 42


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_server(
    postgres_server: EmbeddedPostgres,
) -> None:
    assert os.getsid(postgres_server.pid) != os.getsid(0)


def test_the_server_listens_on_its_socket_only(postgres_server: EmbeddedPostgres) -> None:
    assert ask(postgres_server.dsn, "SHOW listen_addresses") == ""


def test_crash_safety_is_given_up_only_when_asked(parent: Path) -> None:
    with embedded_postgres(parent, max_connections=17) as server:
        assert ask(server.dsn, "SHOW fsync") == "on"
        assert ask(server.dsn, "SHOW max_connections") == "17"


def test_a_clone_has_what_its_template_has(postgres_server: EmbeddedPostgres) -> None:
    tell(postgres_server.create_database("the template"), "CREATE TABLE t AS SELECT 42 AS answer")

    clone = postgres_server.create_database("the clone", "the template")

    assert ask(clone, "SELECT answer FROM t") == 42
    postgres_server.drop_database("the clone")
    postgres_server.drop_database("the template")


def test_the_users_own_postgres_variables_do_not_disturb(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGDATABASE"):
        monkeypatch.setenv(name, "1")

    with embedded_postgres(parent, durable=False) as server:
        assert ask(server.dsn, "SELECT current_user::text") == "postgres"


def test_programs_below_a_private_folder_serve_as_well(parent: Path) -> None:
    programs = find_binaries()
    package = programs.parent.parent
    home = parent / "home"
    site = home / "site-packages"
    wanted = shutil.ignore_patterns("include", "*.py", "__pycache__")
    shutil.copytree(package, site / package.name, symlinks=True, ignore=wanted)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, site / libraries.name)
    home.chmod(0o700)

    with embedded_postgres(
        parent, binaries=site / programs.relative_to(package.parent), durable=False
    ) as server:
        assert ask(server.dsn, "SELECT 42") == 42
    assert home.stat().st_mode & 0o777 == 0o700


def test_reach_ends_at_a_folder_that_others_may_not_enter(parent: Path) -> None:
    inside = parent / "private" / "inside"
    inside.mkdir(parents=True)
    stranger = ServerUser("stranger", uid=987654, gid=987654)
    assert stranger.can_reach(inside)

    inside.parent.chmod(0o700)

    assert not stranger.can_reach(inside)
    assert ServerUser("owner", os.getuid(), os.getgid()).can_reach(inside)


def test_a_wrong_folder_of_programs_is_named(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTBOXD_PG_BIN", str(parent))

    with pytest.raises(EmbeddedPostgresError, match=f"{parent} does not hold initdb and postgres"):
        find_binaries()


def test_without_programs_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OUTBOXD_PG_BIN", raising=False)
    monkeypatch.setattr(postgres_binaries, "_candidates", lambda: iter(()))

    with pytest.raises(EmbeddedPostgresError, match="install outboxd with its extra `demo`"):
        find_binaries()


def test_a_path_too_long_for_a_socket_is_refused_in_words(parent: Path) -> None:
    deep = parent / ("x" * 90)
    deep.mkdir()

    with (
        pytest.raises(EmbeddedPostgresError, match="choose a shorter folder"),
        embedded_postgres(deep),
    ):
        pass
    assert list(deep.iterdir()) == []


def test_a_server_that_cannot_start_says_why(parent: Path) -> None:
    with (
        pytest.raises(EmbeddedPostgresError, match=r"did not start .*max_connections"),
        embedded_postgres(parent, max_connections=-1),
    ):
        pass
    assert list(parent.iterdir()) == []


def test_a_server_that_does_not_react_is_killed(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outboxd.demo.postgres.STOP_SECONDS", 0.2)
    with embedded_postgres(parent, durable=False) as server:
        pid = server.pid
        os.kill(pid, signal.SIGSTOP)

    assert not alive(pid)
