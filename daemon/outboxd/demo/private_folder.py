"""Temporary folders that are removed even when their owner was killed: by the next one."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWNER_LOCK = "owner.lock"


@contextmanager
def private_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder of mode 0700 below `parent` (default: the temporary directory), then removed.

    Folders of the same prefix whose owners are gone are removed first.
    """
    parent = parent or Path(tempfile.gettempdir())
    _sweep(prefix, parent)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    lock = _own(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _own(folder: Path) -> int:
    """Hold the lock that says the owner lives: unlike a pid, it is never somebody else's."""
    # Locked under another name first, or a sweeper could come between creating and locking.
    unseen = folder / f"{OWNER_LOCK}.new"
    lock = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unseen.rename(folder / OWNER_LOCK)
    return lock


def _sweep(prefix: str, parent: Path) -> None:
    for lock_file in parent.glob(f"{prefix}*/{OWNER_LOCK}"):
        try:
            # Not through a symbolic link: the temporary directory is everybody's.
            lock = os.open(lock_file, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:  # another user's, or just being removed
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _empty(lock_file.parent)
        except OSError:  # its owner lives, or something in it still writes
            pass
        finally:
            os.close(lock)


def _empty(folder: Path) -> None:
    """Remove a folder, its lock last: what could not be removed today is found again tomorrow."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.name != OWNER_LOCK:
            entry.unlink()
    (folder / OWNER_LOCK).unlink()
    folder.rmdir()
