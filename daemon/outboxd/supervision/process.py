"""One child process: exec of a fresh interpreter, with a socket pair as its only tie."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import anyio
from anyio.abc import ByteStream, Process

from outboxd.channels.wire import Wire

NOT_FOR_CHILDREN = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID")
"""Only the main process may talk to systemd (sd_notify(3)); a child that does confuses it."""


def environment_of_children() -> dict[str, str]:
    """Ours, without what is between the service manager and us."""
    return {key: value for key, value in os.environ.items() if key not in NOT_FOR_CHILDREN}


Spawn: TypeAlias = "Callable[[str], Awaitable[ChildProcess]]"


class Grip:
    """Signals a process through its pidfd, so that a signal never hits a stranger that got the pid
    of a process which has just been reaped.

    Not by Process.kill(), which reaps one that has just ended: asyncio then waits for it in vain,
    warns of an unknown child process, and reports 255.
    """

    def __init__(self, process: Process) -> None:
        """Take it at once after the spawn, while the pid is still its own."""
        self._process = process
        self._pidfd = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; to a process that is gone this does nothing."""
        with suppress(ProcessLookupError):
            if self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            elif self._process.returncode is None:
                os.kill(self._process.pid, number)

    def close(self) -> None:
        """Let go of a process that has ended."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


class ChildProcess:
    """A running child, and the socket to it."""

    def __init__(self, process: Process, stream: ByteStream) -> None:
        self._process = process
        self._grip = Grip(process)
        self.stream = stream

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int:
        """The exit status once the process has ended and been reaped; negative for a signal."""
        return await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; to a process that is gone this does nothing."""
        self._grip.signal(number)

    async def close(self) -> None:
        """Let go of the socket and the pidfd of a process that has ended."""
        await self.stream.aclose()
        self._grip.close()


async def spawn(name: str, module: str = "outboxd.child") -> ChildProcess:
    """Start `module` as the child for the slot `name`. Raises OSError if it cannot be started.

    Exec, never fork: forked siblings hold copies of each other's sockets, so that none of them sees
    the end of a supervisor that was killed. It must run on the event loop's thread: the death
    signal that a child asks for comes when the *thread* that started it ends (prctl(2)), and worker
    threads end when they have been idle for a while.
    """
    ours, theirs = socket.socketpair()
    try:
        process = await anyio.open_process(
            [
                sys.executable,
                "-P",
                "-m",
                module,
                name,
                "--fd",
                str(theirs.fileno()),
                "--supervisor",
                str(os.getpid()),
            ],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            # Inherited: a pipe that nobody empties would stop the child one day.
            stdout=None,
            stderr=None,
            env=environment_of_children(),
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    stream = await Wire.over(ours)
    try:
        return ChildProcess(process, stream)
    except OSError:  # no descriptor is left for its pidfd
        process.kill()
        await stream.aclose()
        raise
