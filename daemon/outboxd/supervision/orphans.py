"""Burying orphans: what PID 1 of a container owes to processes that are not its own.

A process whose parent has ended becomes a child of PID 1, which has to wait for it when it ends, or
it stays in the process table as a zombie, until no process can be started any more
(pid_namespaces(7)). Handlers start such processes without knowing it, a converter's helper say.
With an init above (docker run --init, initProcessEnabled) PID 1 is that one.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path

import anyio

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0

PROC = Path("/proc")


async def bury_orphans() -> None:
    """For ever, if this process is PID 1."""
    if os.getpid() != 1:
        return
    ended: frozenset[int] = frozenset()
    while True:
        await anyio.sleep(LOOK_SECONDS)
        # Whoever started a process waits for it, and sees its end at once: what is still there at a
        # second look has nobody. waitpid(-1) would take the exit status of a child of ours.
        try:
            before, ended = ended, zombies_of(1)
        except OSError as error:  # a kernel, or a sandbox, that does not list children
            log.warning("orphans cannot be seen here", extra={"error": str(error)})
            return
        for pid in before & ended:
            _bury(pid)


def _bury(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
        log.info("an orphan was buried", extra={"pid": pid})


def zombies_of(parent: int) -> frozenset[int]:
    """Children of the process that have ended and that nobody has waited for. Linux only."""
    children = (PROC / str(parent) / "task" / str(parent) / "children").read_text("ascii").split()
    return frozenset(int(pid) for pid in children if _state(int(pid)) == "Z")


def _state(pid: int) -> str:
    """Of proc(5); empty for a process that is gone."""
    try:
        # The name in parentheses may contain anything, parentheses too.
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
