"""A private PostgreSQL server for the demo and the tests, gone when its owner is gone."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from outboxd.demo.postgres_binaries import (
    EmbeddedPostgresError,
    find_binaries,
    reachable_binaries,
    server_user,
)
from outboxd.demo.postgres_process import TiedProcess
from outboxd.demo.private_folder import private_folder

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "embedded_postgres"]

StopMode = Literal["fast", "immediate"]

STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
START_SECONDS = 60.0
STOP_SECONDS = 10.0
SOCKET_PATH_LIMIT = 107 if sys.platform == "linux" else 103
"""Bytes of a socket's path: `sun_path` without its end mark."""

LEAN = {
    "listen_addresses": "",  # with trust authentication, the socket folder's mode is the lock
    "shared_buffers": "32MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_parallel_workers": "0",
    "autovacuum_max_workers": "1",
    "max_logical_replication_workers": "0",
}
"""9 MB and five processes instead of 23 MB and nine."""

NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class EmbeddedPostgres:
    """One server in one folder: unix socket only, every client trusted, own start and stop.

    Whatever ends the owning process, SIGKILL included, ends the server: see `TiedProcess`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        binaries: Path | None = None,
        max_connections: int = 100,
        durable: bool = True,
    ) -> None:
        """`folder` exists, is private, and is emptied by whoever made it.

        `durable=False` gives up for speed what a crash of the server, also its stop in the mode
        "immediate", leaves of the last moment's commits.
        """
        self._folder = folder
        self._binaries = find_binaries(binaries)
        self._settings = {
            **LEAN,
            **({} if durable else NOT_DURABLE),
            "unix_socket_directories": str(folder),
            "max_connections": str(max_connections),
        }
        self._user = server_user()
        self._process: TiedProcess | None = None

    @property
    def dsn(self) -> str:
        """How to connect, as superuser, to the database `postgres`."""
        return self.dsn_of("postgres")

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        if self._process is None:
            raise EmbeddedPostgresError(
                "the embedded PostgreSQL is not running: call start() first"
            )
        return self._process.pid

    def dsn_of(self, database: str) -> str:
        """How to connect to `database` as superuser."""
        return make_conninfo(host=str(self._folder), port=5432, user="postgres", dbname=database)

    def start(self) -> None:
        """Create the cluster when there is none yet; wait until the server takes connections."""
        if self._process is not None:
            raise EmbeddedPostgresError("the embedded PostgreSQL is running already")
        if not (self._data / "PG_VERSION").exists():
            self._create_cluster()
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        if int((self._data / "PG_VERSION").read_text()) >= 18:
            options.append("--io_method=sync")  # the default keeps three idle workers
        self._process = self._run("postgres", "-D", str(self._data), "-p", "5432", *options)
        self._await_ready(self._process)

    def stop(self, mode: StopMode = "fast") -> None:
        """End the server: cleanly, or (`immediate`) so that the next start has to recover."""
        if self._process is None:
            return
        for number in (STOP_SIGNALS[mode], signal.SIGQUIT, signal.SIGKILL):
            self._process.send(number)
            if self._process.wait(STOP_SECONDS) is not None:
                break
        self._process = None

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start; databases and `dsn` stay."""
        self.stop(mode)
        self.start()

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, as a copy of `template` if given, and return its DSN."""
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        self._administer(statement)
        return self.dsn_of(name)

    def drop_database(self, name: str) -> None:
        """Drop a database; connections that are still open to it are ended."""
        self._administer(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _log(self) -> Path:
        return self._folder / "server.log"

    def _administer(self, statement: sql.Composed) -> None:
        with closing(psycopg.connect(self.dsn, autocommit=True)) as connection:
            connection.execute(statement)

    def _create_cluster(self) -> None:
        _check_socket_path(self._folder)
        if self._user is not None:
            os.chown(self._folder, self._user.uid, self._user.gid)
            if not self._user.can_reach(self._folder):
                raise EmbeddedPostgresError(
                    f"the user {self._user.name!r}, as which PostgreSQL runs when started by root, "
                    f"cannot enter {self._folder}: choose a folder that others may pass through"
                )
        self._binaries = reachable_binaries(self._binaries, self._user, self._folder / "binaries")
        initdb = self._run(
            "initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust",
            "--encoding=UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        code = initdb.wait(START_SECONDS)
        if code is None:
            initdb.send(signal.SIGKILL)
            initdb.wait(STOP_SECONDS)
        if code != 0:
            raise self._failure("cannot create a PostgreSQL cluster")

    def _run(self, program: str, *arguments: str) -> TiedProcess:
        command = [str(self._binaries / program), *arguments]
        return TiedProcess(command, user=self._user, folder=self._folder, log=self._log)

    def _await_ready(self, server: TiedProcess) -> None:
        """Wait for the postmaster's own word, as pg_ctl does: it needs no connection."""
        deadline = time.monotonic() + START_SECONDS
        while not _announces_ready(self._data / "postmaster.pid", server.pid):
            if server.exited or time.monotonic() > deadline:
                self.stop("immediate")
                raise self._failure("PostgreSQL did not start")
            time.sleep(0.005)

    def _failure(self, what: str) -> EmbeddedPostgresError:
        last_words = self._log.read_text(errors="replace").strip().splitlines()[-5:]
        return EmbeddedPostgresError(f"{what} with {self._binaries}: {' / '.join(last_words)}")


@contextmanager
def embedded_postgres(
    directory: Path | None = None,
    *,
    binaries: Path | None = None,
    max_connections: int = 100,
    durable: bool = True,
) -> Iterator[EmbeddedPostgres]:
    """A started server in a new folder below `directory` (default: the temporary directory).

    Both are gone afterwards. What a killed owner had to leave behind is removed by the next one.
    """
    with private_folder("outboxd-pg-", directory) as folder:
        server = EmbeddedPostgres(
            folder, binaries=binaries, max_connections=max_connections, durable=durable
        )
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _announces_ready(pid_file: Path, pid: int) -> bool:
    try:
        lines = pid_file.read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _check_socket_path(folder: Path) -> None:
    length = len(os.fsencode(folder / ".s.PGSQL.5432.lock"))
    if length > SOCKET_PATH_LIMIT:
        raise EmbeddedPostgresError(
            f"a socket in {folder} would have a path of {length} bytes, above the system's "
            f"{SOCKET_PATH_LIMIT}: choose a shorter folder (TMPDIR=/tmp)"
        )
