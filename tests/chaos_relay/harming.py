"""Does the harm of a schedule, and notes before each what it may repeat."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import assert_never

from msgspec import Struct

from tests.chaos.timetable import Say, Timetable
from tests.chaos_relay.schedule import Act, Harm
from tests.chaos_relay.world import Daemon, World

AGAIN_SECONDS = 0.2
LATEST_SECONDS = 20.0
"""So much later than planned harm is done at the latest: then there was never a relay to harm."""

SETTLE_SECONDS = 0.3
"""After a relay is stopped: for what it had on the wire to arrive, and for a mark to commit."""

ON_THE_WIRE_SECONDS = 0.1
"""After it goes on: what it was just writing to a socket arrives now. Anything new it may send only
after it has renewed its leases."""


class Cut(Struct, frozen=True, kw_only=True):
    """What one harm may repeat: the events that were in a send call, and those that were accepted
    and not marked. `after` is how many had been accepted by then."""

    harm: str
    after: int
    in_a_call: frozenset[str]
    unsettled: frozenset[str]


class Harmer(Timetable):
    """Carries out acts one after the other, and undoes what is to be undone."""

    def __init__(self, world: World, acts: Sequence[Act], say: Say) -> None:
        super().__init__(say)
        self._world = world
        self._frozen: set[str] = set()
        self.done: list[Act] = []
        self.cuts: list[Cut] = []
        self.restarts: list[Cut] = []
        """What was unsettled at a restart of PostgreSQL, and must not be repeated for that: the
        relays that know of it live on, and it is shorter than their leases."""
        for act in acts:
            self.later(act.at, partial(self._carry_out, act))

    def _carry_out(self, act: Act) -> None:
        match act.harm:
            case Harm.KILL:
                self._to_relay(act, self._kill)
            case Harm.FREEZE | Harm.FREEZE_LONG:
                self._to_relay(act, self._freeze)
            case Harm.KILL_SUPERVISOR:
                self._to_relay(act, self._kill_supervisor)
            case Harm.STOP:
                self._to_relay(act, self._stop)
            case Harm.RESTART_DATABASE:
                self._stop_database(act)
            case Harm.OUTAGE:
                self._begin_outage(act)
            case _:
                assert_never(act.harm)

    def _to_relay(self, act: Act, do: Callable[[Act, Daemon, int], bool]) -> None:
        """Now, or as soon as the chosen daemon has a relay that is not frozen."""
        daemons = [each for each in self._world.daemons if each.name not in self._frozen]
        daemon = daemons[act.which % len(daemons)] if daemons else None
        relay = daemon.relay() if daemon is not None else None
        if daemon is not None and relay is not None and do(act, daemon, relay.pid):
            self.done.append(act)
        elif self.now < act.at + LATEST_SECONDS:
            self.later(self.now + AGAIN_SECONDS, partial(self._to_relay, act, do))
        else:
            self.tell(f"{act.harm}: not done, there is no relay")

    def _kill(self, act: Act, daemon: Daemon, pid: int) -> bool:
        """Frozen first: what it has done cannot be counted while it does more."""
        if not _send(pid, signal.SIGSTOP):
            return False
        cut = self._note(act.harm, daemon)
        _send(pid, signal.SIGKILL)
        self.tell(f"kill the relay of {daemon.name} (pid {pid}); {_may_repeat(cut)}")
        return True

    def _freeze(self, act: Act, daemon: Daemon, pid: int) -> bool:
        if not _send(pid, signal.SIGSTOP):
            return False
        self._frozen.add(daemon.name)
        told = f"freeze the relay of {daemon.name} (pid {pid}) for {act.seconds:.1f} s"
        if act.harm is Harm.FREEZE_LONG:
            told += f"; {_may_repeat(self._note(act.harm, daemon))}"
        self.tell(told)
        self.later(self.now + act.seconds, partial(self._thaw, act, daemon, pid))
        return True

    def _thaw(self, act: Act, daemon: Daemon, pid: int) -> None:
        before = len(self._world.book.arrivals)
        _send(pid, signal.SIGCONT)
        time.sleep(ON_THE_WIRE_SECONDS)
        late = self._world.book.arrivals[before:]
        if act.harm is Harm.FREEZE_LONG:
            events = frozenset(each.event for each in late if each.sender == daemon.name)
            after = len(self._world.book.arrivals)
            self.cuts.append(Cut(harm="thaw", after=after, in_a_call=events, unsettled=frozenset()))
        self._frozen.discard(daemon.name)
        self.tell(f"thaw the relay of {daemon.name}")

    def _note(self, harm: Harm, daemon: Daemon) -> Cut:
        """What this relay, which is stopped, has in hand."""
        book = self._world.book
        after, before = len(book.arrivals), book.answered(daemon.name)
        time.sleep(SETTLE_SECONDS)
        unmarked = self._world.unmarked(book.answered(daemon.name))
        in_a_call = frozenset(unmarked - before)
        unsettled = frozenset(unmarked - in_a_call)
        cut = Cut(harm=harm, after=after, in_a_call=in_a_call, unsettled=unsettled)
        self.cuts.append(cut)
        return cut

    def _kill_supervisor(self, act: Act, daemon: Daemon, pid: int) -> bool:
        self._world.kill_daemon(daemon)
        successor = self._world.start_daemon()
        self.tell(f"kill the supervisor of {daemon.name}; {successor.name} begins")
        return True

    def _stop(self, act: Act, daemon: Daemon, pid: int) -> bool:
        self._world.daemons.remove(daemon)
        _send(daemon.supervisor.pid, signal.SIGTERM)
        successor = self._world.start_daemon()
        self.tell(f"stop {daemon.name}; {successor.name} begins")
        return True

    def _stop_database(self, act: Act) -> None:
        self.tell(f"stop PostgreSQL ({act.mode}), for {act.seconds:.1f} s")
        self._world.postgres.stop("immediate" if act.mode == "immediate" else "fast")
        self.later(self.now + act.seconds, partial(self._start_database, act))

    def _start_database(self, act: Act) -> None:
        self._world.postgres.start()
        cut = Cut(
            harm=act.harm,
            after=len(self._world.book.arrivals),
            in_a_call=frozenset(),
            unsettled=frozenset(self._world.unmarked(self._world.book.answered())),
        )
        self.restarts.append(cut)
        self.tell(f"PostgreSQL is up again; {len(cut.unsettled)} unsettled")
        self.done.append(act)

    def _begin_outage(self, act: Act) -> None:
        assert act.outage is not None
        self._world.book.outage = act.outage
        self.tell(f"destination: {act.outage}, for {act.seconds:.1f} s")
        self.later(self.now + act.seconds, partial(self._end_outage, act))

    def _end_outage(self, act: Act) -> None:
        self._world.book.outage = None
        self.tell("destination: back")
        self.done.append(act)


def _may_repeat(cut: Cut) -> str:
    return f"{len(cut.in_a_call)} in a send call, {len(cut.unsettled)} unsettled"


def _send(pid: int, number: signal.Signals) -> bool:
    """Whether the process was there. Its number is a relay's, seen a moment ago; a machine would
    have to start tens of thousands of processes meanwhile for it to be another's."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
