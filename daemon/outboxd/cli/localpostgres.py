"""`outboxd localpostgres`: a PostgreSQL for a trial, without installing one."""

import argparse
import fcntl
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import quote

from outboxd.core.errors import OutboxdError
from outboxd.core.exit_codes import ExitCode

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a service manager, and a terminal that is closed."""

LOOK_SECONDS = 1.0
"""How often it is looked whether the server still runs."""

PREDECESSOR_SECONDS = 10.0
"""How long the server of a killed command may take to end: its kernel has told it to."""

LOCK = "localpostgres.lock"


class NoLocalPostgres(OutboxdError):
    """The server cannot run; the message says why and what to do about it."""


def add_parser(subparsers: Any) -> None:
    """Describe the command to argparse."""
    parser = subparsers.add_parser(
        "localpostgres",
        help="run a local PostgreSQL for a trial",
        description=(
            "Runs a PostgreSQL until Ctrl-C, and prints its URL, which is always the same for a "
            "user of this machine. It listens on a Unix socket that nobody else can reach, and "
            "forgets everything when it stops, unless it is given a directory to keep it in: for "
            "development and tests only. Needs outboxd's extra `demo`, or PostgreSQL's programs."
        ),
        epilog="example: outboxd localpostgres --directory /var/tmp/trial",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        metavar="PATH",
        help="keep the data in this directory, which is made, or empty, or of this command",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until it is stopped. Raises NoLocalPostgres."""
    from outboxd.demo.postgres import EmbeddedPostgres, EmbeddedPostgresError

    kept: Path | None = arguments.directory
    folder = default_directory(os.environ) if kept is None else kept.absolute()
    with _stopped_by_signals() as stopping, _owned(folder, keep=kept is not None):
        try:
            server = EmbeddedPostgres(folder, binaries=_copied(folder), durable=kept is not None)
            server.start()
        except EmbeddedPostgresError as error:
            raise NoLocalPostgres(str(error)) from error
        try:
            print(url_of(folder), flush=True)
            _wait(stopping, server.pid)
        finally:
            server.stop()
    return ExitCode.OK


def default_directory(environ: Mapping[str, str]) -> Path:
    """Below the temporary directory, as the starter's local.env names it: a socket's path must be
    short, and the user that the server of root runs as cannot enter a home."""
    return Path(environ.get("TMPDIR") or "/tmp").absolute() / f"outboxd-postgres-{os.geteuid()}"


def url_of(folder: Path) -> str:
    """How to connect to the database `postgres` as its superuser."""
    return f"postgresql://postgres@/postgres?host={quote(str(folder))}"


@contextmanager
def _owned(folder: Path, *, keep: bool) -> Iterator[None]:
    """Make `folder` this process's own, for nobody else to enter; empty, too, unless `keep`."""
    try:
        lock = _lock(folder)
    except OSError as error:
        raise NoLocalPostgres(f"cannot use {folder}: {error.strerror}") from error
    try:
        _await_predecessor(folder / "data" / "postmaster.pid")
        if not keep:
            _empty(folder)
        yield
    finally:
        if not keep:
            _remove(folder)
        os.close(lock)


def _lock(folder: Path) -> int:
    """The lock that says that its owner lives: unlike a pid, it is never somebody else's.

    Raises OSError, and NoLocalPostgres when the folder is not ours to use.
    """
    path = folder / LOCK
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_what_is_not_ours(folder)
        folder.chmod(0o700)  # every client is trusted, so this is what keeps others out
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise NoLocalPostgres(
                f"one runs in {folder} already: stop it, use it, or name another with --directory"
            ) from None
        # One that has just ended may have removed the folder between our opening and locking.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(lock)):
            return lock
        os.close(lock)


def _refuse_what_is_not_ours(folder: Path) -> None:
    """The temporary directory is everybody's: a folder there may have been laid for us."""
    from outboxd.demo.postgres_binaries import server_user

    user = server_user()  # to whom a server that root starts has its folder given
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid not in {os.geteuid(), user.uid if user else -1}:
        raise NoLocalPostgres(f"{folder} is a link, or another user's: choose with --directory")
    entries = {entry.name for entry in folder.iterdir()}
    if entries and LOCK not in entries:
        raise NoLocalPostgres(f"{folder} has other things in it: name an empty directory")


def _await_predecessor(pid_file: Path) -> None:
    """Wait until the server of a command that was killed has removed its socket, and not ours."""
    deadline = time.monotonic() + PREDECESSOR_SECONDS
    while _runs(pid_file) and time.monotonic() < deadline:
        time.sleep(0.05)


def _runs(pid_file: Path) -> bool:
    try:
        os.kill(int(pid_file.read_text().split()[0]), 0)
    except (FileNotFoundError, IndexError, ValueError, ProcessLookupError):
        return False
    except PermissionError:  # another user's: a number that was given away again
        return False
    return True


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != LOCK:
            entry.unlink()


def _remove(folder: Path) -> None:
    """The lock last, so that who comes next finds it held or the folder empty."""
    with suppress(OSError):  # a server that did not end still writes; the next command sweeps
        _empty(folder)
        (folder / LOCK).unlink()
        folder.rmdir()


def _copied(folder: Path) -> Path | None:
    """The programs that a server of root had copied into a directory that is kept, if it had."""
    found = sorted(folder.glob("binaries/**/bin/postgres"))
    return found[0].parent if found else None


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that the first signal sets; a second one interrupts whatever does not stop."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    previous = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _wait(stopping: threading.Event, pid: int) -> None:
    """Until a signal. Raises NoLocalPostgres when the server ends by itself."""
    while not stopping.wait(LOOK_SECONDS):
        # WNOWAIT: looked at only; whoever started the process is still to reap it.
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            raise NoLocalPostgres("the PostgreSQL has ended by itself: start it again")
