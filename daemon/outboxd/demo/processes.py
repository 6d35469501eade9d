"""The children of a supervisor as the operating system shows them: no word of its own needed."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

PROC = Path("/proc")
CHILD_MODULE = "outboxd.child"


class Child(Struct, frozen=True):
    """One child process; `role` is `relay`, `extender` or `consumer:<queue>/<n>`."""

    pid: int
    role: str


def children_of(supervisor: int) -> tuple[Child, ...]:
    """The supervisor's living children, by role. The list is old as soon as it is made."""
    processes = _from_proc() if PROC.joinpath("self/stat").exists() else _from_ps()
    children = (
        Child(pid, arguments[arguments.index(CHILD_MODULE) + 1])
        for pid, parent, arguments in processes
        if parent == supervisor and CHILD_MODULE in arguments[:-1]
    )
    return tuple(sorted(children, key=lambda child: (child.role, child.pid)))


def kill(child: Child, supervisor: int) -> bool:
    """SIGKILL the child; whether it was still there to be killed."""
    if not hasattr(os, "pidfd_open"):
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
            return True
        return False
    try:
        pidfd = os.pidfd_open(child.pid)
    except ProcessLookupError:
        return False
    try:
        # The number may belong to a stranger by now; from here on the descriptor does not.
        if child not in children_of(supervisor):
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)


_Process = tuple[int, int, list[str]]
"""Process id, parent's process id, arguments."""


def _from_proc() -> list[_Process]:
    found = (_read(entry) for entry in PROC.iterdir() if entry.name.isdigit())
    return [process for process in found if process is not None]


def _read(entry: Path) -> _Process | None:
    try:
        # The second field is the command in parentheses, and may hold spaces and parentheses.
        state, parent = entry.joinpath("stat").read_text().rpartition(")")[2].split()[:2]
        arguments = entry.joinpath("cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return None
    if state == "Z":
        return None
    return int(entry.name), int(parent), arguments.decode(errors="replace").split("\0")


def _from_ps() -> list[_Process]:
    listing = subprocess.run(
        ["ps", "-Awwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    )
    rows = (line.split() for line in listing.stdout.splitlines())
    return [(int(pid), int(parent), arguments) for pid, parent, *arguments in rows]
