"""The Unix socket of a daemon: who may reach it, and that only one daemon listens on it."""

import errno
import fcntl
import os
import socket
import stat
from pathlib import Path

from outboxd.core.errors import AddressInUse, SettingsError

BACKLOG = 16
WHERE = "[supervisor] control_socket"


class ControlSocket:
    """A listening Unix socket that only this user, and root, can reach: its directory is closed to
    everybody else, and so is the file itself.

    Beside it lies a lock that a living daemon holds, and that its death releases however it dies.
    Whoever gets the lock may replace the socket file; asking the file itself, by connecting to it,
    would leave two daemons that start at once time to take it from each other.
    """

    def __init__(self, path: str) -> None:
        """Listen. Raises AddressInUse if another daemon does, and SettingsError if nothing can."""
        self._path = Path(path)
        _make_private_directory(self._path.parent)
        self._lock = _lock(self._path)
        try:
            _clear_away(self._path)
            self.socket = _listen(self._path)
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Take the file away, then let the next daemon have it; once more changes nothing."""
        if self._lock < 0:
            return
        self.socket.close()
        self._path.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = -1


def _make_private_directory(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        mode = directory.stat()
    except OSError as error:
        raise SettingsError([f"{WHERE}: {directory}: {error.strerror}"]) from error
    if mode.st_uid != os.geteuid():
        raise SettingsError(
            [f"{WHERE}: {directory} belongs to another user; use a directory of the daemon's own"]
        )
    if stat.S_IMODE(mode.st_mode) & 0o077:
        raise SettingsError(
            [f"{WHERE}: others can enter {directory}; use one of its own, with mode 0700"]
        )


def _lock(path: Path) -> int:
    lock = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SettingsError([f"{WHERE}: {lock}: {error.strerror}"]) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise SettingsError([f"{WHERE}: {lock}: {error.strerror}"]) from error
        raise AddressInUse(
            f"{WHERE}: {path} is in use by another outboxd; stop that one or choose another path"
        ) from error
    return descriptor


def _clear_away(path: Path) -> None:
    """Remove the socket of a daemon that was killed, and nothing else."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise SettingsError([f"{WHERE}: {path} exists and is no socket; choose another path"])
        path.unlink()
    except FileNotFoundError:
        return


def _listen(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(os.fspath(path))
        path.chmod(0o600)
        listening.listen(BACKLOG)
    except OSError as error:  # a path that is too long has no errno's text
        listening.close()
        raise SettingsError([f"{WHERE}: {path}: {error.strerror or error}"]) from error
    listening.setblocking(False)
    return listening
