"""One program of PostgreSQL, run as its user and tied to the life of this process."""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from signal import Signals

from outboxd.demo import postgres_launcher
from outboxd.demo.postgres_binaries import ServerUser


class TiedProcess:
    """Gets SIGINT (PostgreSQL: a fast shutdown) when this process ends, by whatever means."""

    def __init__(
        self, command: Sequence[str], *, user: ServerUser | None, folder: Path, log: Path
    ) -> None:
        """Run `command` in `folder` as `user` (None: as we are), its output appended to `log`."""
        # The kernel's signal comes when the *thread* that started the child ends, so it serves only
        # children of the main thread. Any other thread, and macOS, uses the pipe.
        watch, inherited, self._guard = postgres_launcher.PARENT_DEATH_SIGNAL, None, None
        if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
            inherited, self._guard = os.pipe()
            watch = str(inherited)
        try:
            self._process = self._start([watch, "--", *command], user, folder, log, inherited)
        except BaseException:
            self._let_go()
            raise
        finally:
            if inherited is not None:
                os.close(inherited)

    @property
    def pid(self) -> int:
        """The program's own: the launcher became it."""
        return self._process.pid

    @property
    def exited(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def send(self, signal: Signals) -> None:
        """Send it a signal; nothing happens when it has ended."""
        self._process.send_signal(signal)

    def wait(self, seconds: float) -> int | None:
        """Its exit code, or None when it still runs after `seconds`."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._let_go()
        return code

    def _start(
        self,
        arguments: list[str],
        user: ServerUser | None,
        folder: Path,
        log: Path,
        inherited: int | None,
    ) -> subprocess.Popen[bytes]:
        whom = f"{user.uid}:{user.gid}" if user else "-"
        launcher = [sys.executable, "-I", "-S", postgres_launcher.__file__, str(os.getpid()), whom]
        with log.open("ab") as output:
            return subprocess.Popen(
                [*launcher, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                env={k: v for k, v in os.environ.items() if not k.startswith("PG")},
                pass_fds=() if inherited is None else (inherited,),
                start_new_session=True,  # a Ctrl-C in the terminal is ours to translate
            )

    def _let_go(self) -> None:
        """Close our end of the pipe; the guard, if there is one, finds nobody to signal."""
        if self._guard is not None:
            os.close(self._guard)
            self._guard = None
