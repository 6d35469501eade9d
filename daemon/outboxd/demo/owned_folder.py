"""A folder that one server at a time keeps its data and its socket in, closed to everybody else."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from outboxd.demo.errors import DemoError
from outboxd.demo.postgres_binaries import server_user

PREDECESSOR_SECONDS = 10.0
"""How long the server of a killed command may take to end: its kernel has told it to."""

LOCK = "localpostgres.lock"


class FolderTaken(DemoError):
    """Another has it, or it is not ours to use; the message says what to do about it."""


@contextmanager
def owned_folder(folder: Path, *, keep: bool) -> Iterator[None]:
    """Make `folder` this process's own, for nobody else to enter; empty, too, unless `keep`.

    Raises FolderTaken when it cannot be.
    """
    try:
        lock = _lock(folder)
    except OSError as error:
        raise FolderTaken(f"cannot use {folder}: {error.strerror}") from error
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

    Raises OSError, and FolderTaken when the folder is not ours to use.
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
            raise FolderTaken(
                f"one runs in {folder} already: stop it, use it, or name another with --directory"
            ) from None
        # One that has just ended may have removed the folder between our opening and locking.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(lock)):
            return lock
        os.close(lock)


def _refuse_what_is_not_ours(folder: Path) -> None:
    """The temporary directory is everybody's: a folder there may have been laid for us."""
    user = server_user()  # to whom a server that root starts has its folder given
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid not in {os.geteuid(), user.uid if user else -1}:
        raise FolderTaken(f"{folder} is a link, or another user's: choose with --directory")
    entries = {entry.name for entry in folder.iterdir()}
    if entries and LOCK not in entries:
        raise FolderTaken(f"{folder} has other things in it: name an empty directory")


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
