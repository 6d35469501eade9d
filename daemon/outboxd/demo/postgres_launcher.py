"""Becomes a PostgreSQL program that runs unprivileged and dies with the process that started it.

Run as a script (`python -I -S postgres_launcher.py PARENT UID:GID WATCH -- PROGRAM ARGUMENTS`) of
the standard library only, and replaced by PROGRAM through exec: its pid is the program's pid.

A script of its own rather than `preexec_fn`: that one runs Python between fork and exec, where a
lock held by another thread of the parent is held for ever. The order is the point: dropping the
user clears the parent-death signal, so it is asked for afterwards.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""

PARENT_DEATH_SIGNAL = "parent-death-signal"
"""Linux: the kernel sends SIGINT (a fast shutdown) when the *thread* that started us has ended."""


def main(arguments: list[str]) -> None:
    """Drop the user, tie our life to the parent's, and become the program."""
    parent, user, watch, _, *program = arguments
    if user != "-":
        uid, gid = (int(part) for part in user.split(":"))
        _become(uid, gid)
    os.umask(0o077)
    if watch == PARENT_DEATH_SIGNAL:
        _die_with_parent(int(parent))
    else:
        _guard_by_pipe(int(watch))
    os.execv(program[0], program)


def _become(uid: int, gid: int) -> None:
    try:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    except OSError as error:
        sys.exit(f"cannot become user {uid}, group {gid}, as which PostgreSQL would run: {error}")


def _die_with_parent(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0) != 0:
        sys.exit(f"cannot ask for the parent-death signal: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # it died before the call above, which then says nothing
        sys.exit("the process that started PostgreSQL is gone")


def _guard_by_pipe(fd: int) -> None:
    """Leave a child behind that sends SIGINT when the parent's end of the pipe closes.

    The guard is the child and the program the parent, so that `getppid()` tells the guard whether
    the program still lives: a remembered pid could meanwhile belong to somebody else.
    """
    program = os.getpid()
    if os.fork() != 0:
        os.close(fd)
        return
    os.dup2(os.open(os.devnull, os.O_RDWR), sys.stderr.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.read(fd, 1)
    if os.getppid() == program:
        os.kill(program, signal.SIGINT)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
