"""A PgBouncer in transaction mode, in front of an embedded PostgreSQL."""

import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from outboxd.demo.postgres_binaries import server_user
from outboxd.demo.postgres_process import TiedProcess
from outboxd.demo.private_folder import private_folder
from tests.system.scene import free_port

START_SECONDS = 10.0

CONFIGURATION = """
[databases]
* = host={host} port={port} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
server_login_retry = 1
{more}
"""


class PgBouncer:
    """One PgBouncer; `pooled` says how to reach a database of the server through it."""

    def __init__(self, folder: Path, server_dsn: str, pool_size: int, more: str) -> None:
        """`folder` is private, and emptied by whoever made it. `more` are lines for its file."""
        server = conninfo_to_dict(server_dsn)
        self.port = free_port()
        self._folder = folder
        # It refuses to run as root, and the server's socket is that user's alone.
        self._user = server_user()
        (folder / "pgbouncer.ini").write_text(
            CONFIGURATION.format(
                host=server["host"],
                port=server["port"],
                user=server["user"],
                listen_port=self.port,
                pool_size=pool_size,
                more=more,
            )
        )
        if self._user is not None:
            for path in (folder, folder / "pgbouncer.ini"):
                os.chown(path, self._user.uid, self._user.gid)
        self._process: TiedProcess | None = None

    def pooled(self, dsn: str) -> str:
        """The same database, through the pooler."""
        given = conninfo_to_dict(dsn)
        return make_conninfo(
            host="127.0.0.1", port=self.port, user=given["user"], dbname=given["dbname"]
        )

    def start(self) -> None:
        program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        assert program, "there is no pgbouncer: see tests/system/install-packages"
        command = [program, str(self._folder / "pgbouncer.ini")]
        log = self._folder / "pgbouncer.log"
        self._process = TiedProcess(command, user=self._user, folder=self._folder, log=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._accepts():
            ready_in_time = time.monotonic() < deadline and not self._process.exited
            assert ready_in_time, log.read_text()
            time.sleep(0.02)

    def stop(self) -> None:
        """At once: whoever is connected is hung up on, in the middle of whatever it does."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._process.send(number)
            if self._process.wait(5) is not None:
                break
        self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


@contextmanager
def pgbouncer(server_dsn: str, pool_size: int, more: str = "") -> Iterator[PgBouncer]:
    """A running PgBouncer in front of this server, gone at the end of the block."""
    with private_folder("outboxd-pgbouncer-") as folder:
        pooler = PgBouncer(folder, server_dsn, pool_size, more)
        try:
            pooler.start()
            yield pooler
        finally:
            pooler.stop()
