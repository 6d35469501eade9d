"""Does the harm of a schedule, at its times, to processes that come and go meanwhile."""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import assert_never

from outboxd.demo.processes import Child, children_of, kill
from tests.chaos.schedule import Act, Harm
from tests.chaos.timetable import Say, Timetable
from tests.chaos.world import World

AGAIN_SECONDS = 0.2
"""After so long a role is looked for again that just has no process."""

LATEST_SECONDS = 20.0
"""So much later than planned harm is done at the latest: then its role never came back."""


class Harmer(Timetable):
    """Carries out acts one after the other, and lets frozen processes go on."""

    def __init__(self, world: World, acts: Sequence[Act], say: Say) -> None:
        super().__init__(say)
        self._world = world
        self.done: list[Act] = []
        for act in acts:
            self.later(act.at, partial(self._carry_out, act))

    def _carry_out(self, act: Act) -> None:
        match act.harm:
            case Harm.KILL:
                self._to_child(act, self._kill)
            case Harm.FREEZE:
                self._to_child(act, self._freeze)
            case Harm.RESTART_POSTGRES:
                self._restart_postgres(act)
            case Harm.KILL_SUPERVISOR:
                self._kill_supervisor(act)
            case Harm.FREEZE_SUPERVISOR:
                self._freeze_supervisor(act)
            case _:
                assert_never(act.harm)

    def _to_child(self, act: Act, do: Callable[[Act, Child], bool]) -> None:
        """Now, or as soon as the role has a process again."""
        children = children_of(self._world.daemon.pid)
        victim = next((child for child in children if child.role == act.target), None)
        if victim is not None and do(act, victim):
            self.done.append(act)
        elif self.now < act.at + LATEST_SECONDS:
            self.later(self.now + AGAIN_SECONDS, lambda: self._to_child(act, do))
        else:
            self.tell(f"{act.harm} {act.target}: not done, there is no such process")

    def _kill(self, act: Act, victim: Child) -> bool:
        if not kill(victim, self._world.daemon.pid):
            return False
        self.tell(f"kill {victim.role} (pid {victim.pid})")
        return True

    def _freeze(self, act: Act, victim: Child) -> bool:
        try:
            process = os.pidfd_open(victim.pid)
        except ProcessLookupError:
            return False
        # The number may belong to a stranger by now; from here on the descriptor does not.
        if victim not in children_of(self._world.daemon.pid):
            os.close(process)
            return False
        return self._stop_for(act.seconds, f"{victim.role} (pid {victim.pid})", process)

    def _freeze_supervisor(self, act: Act) -> None:
        pid = self._world.daemon.pid
        if self._stop_for(act.seconds, f"the supervisor (pid {pid})", os.pidfd_open(pid)):
            self.done.append(act)

    def _stop_for(self, seconds: float, who: str, process: int) -> bool:
        """Whether it was there to be stopped. The descriptor `process` is closed in the end."""

        def thaw() -> None:
            with suppress(ProcessLookupError):  # killed meanwhile
                signal.pidfd_send_signal(process, signal.SIGCONT)
            os.close(process)
            self.tell(f"thaw {who}")

        try:
            signal.pidfd_send_signal(process, signal.SIGSTOP)
        except ProcessLookupError:
            os.close(process)
            return False
        self.tell(f"freeze {who} for {seconds:.1f} s")
        self.later(self.now + seconds, thaw)
        return True

    def _restart_postgres(self, act: Act) -> None:
        self.tell(f"stop PostgreSQL ({act.target}), for {act.seconds:.1f} s")
        self._world.postgres.stop("immediate" if act.target == "immediate" else "fast")
        self.later(self.now + act.seconds, lambda: self._start_postgres(act))

    def _start_postgres(self, act: Act) -> None:
        self._world.postgres.start()
        self.tell("PostgreSQL is up again")
        self.done.append(act)

    def _kill_supervisor(self, act: Act) -> None:
        pid = self._world.daemon.pid
        os.kill(pid, signal.SIGKILL)
        self.tell(f"kill the supervisor (pid {pid}), next one in {act.seconds:.1f} s")
        self.later(self.now + act.seconds, lambda: self._start_supervisor(act))

    def _start_supervisor(self, act: Act) -> None:
        daemon = self._world.start_daemon()
        self.tell(f"a new supervisor (pid {daemon.pid})")
        self.done.append(act)
