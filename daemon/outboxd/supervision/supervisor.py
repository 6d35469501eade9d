"""The supervisor: keeps the children running until it is told to stop, then stops them in order."""

import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import anyio
from anyio.abc import TaskGroup

from outboxd.channels.protocol import Address, Message, Suspect, Welcome
from outboxd.core.children import ChildSpec, Kind
from outboxd.core.clock import boottime
from outboxd.core.errors import OutboxdError
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import Settings
from outboxd.supervision.crew import Crew
from outboxd.supervision.estates import Estates
from outboxd.supervision.incarnation import End
from outboxd.supervision.invariants import broken_invariants
from outboxd.supervision.ledger import Ledger
from outboxd.supervision.life import Life
from outboxd.supervision.link import Link
from outboxd.supervision.metrics import MetricsBook
from outboxd.supervision.observing import ReloadResult, RestartReason, SupervisorObserver
from outboxd.supervision.orphans import bury_orphans
from outboxd.supervision.pauses import Pauses
from outboxd.supervision.process import Spawn, spawn
from outboxd.supervision.reloader import Reloader
from outboxd.supervision.reloading import Source
from outboxd.supervision.replacements import Replacements
from outboxd.supervision.sd_notify import Notifier
from outboxd.supervision.stack_dumps import StackDumps
from outboxd.supervision.stopping import Timetable
from outboxd.supervision.switchboard import Switchboard

log = logging.getLogger(__name__)

LAG_SAMPLE_SECONDS = 1.0

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)

PLANNED = "planned"
"""Stands for the reason of an end that has none."""


class NotReloaded(OutboxdError):
    """The old configuration is in use; the text says why."""


class Supervisor:
    """Owns every child. It survives whatever a library or a handler does in one of them."""

    def __init__(
        self,
        settings: Settings,
        specs: Sequence[ChildSpec],
        observer: SupervisorObserver,
        book: MetricsBook,
        notifier: Notifier,
        spawn: Spawn = spawn,
        source: Source | None = None,
    ) -> None:
        self._observer = observer
        self._book = book
        self._notifier = notifier
        self._switchboard = Switchboard(Ledger(), book.took)
        self._crew = Crew(settings, specs, self, observer, spawn, self._removed)
        self._estates = Estates(self._switchboard, self._crew.stop_workers)
        self.pauses = Pauses(self._crew.queues, self._switchboard, observer)
        self._replacements = Replacements(lambda: self.lives, lambda: self.stopping)
        self._dumps = StackDumps(lambda: self.lives)
        self._reloader = (
            None
            if source is None
            else Reloader(self._crew, source, observer, notifier, self._replacements.turn)
        )
        self._fatal: ExitCode | None = None
        self._once_ready = False
        self._started = anyio.Event()
        self._end_at: float | None = None
        self._tasks: TaskGroup | None = None

    @property
    def lives(self) -> Sequence[Life]:
        """The slots, in the order of the configuration."""
        return self._crew.lives

    @property
    def stopping(self) -> bool:
        return self._crew.stopping

    def life(self, name: str) -> Life:
        """The slot of that name. Raises StopIteration if there is none."""
        return self._crew.life(name)

    # What an operator may order.

    def pause(self, queue: str) -> None:
        """Have the pools of this queue stop receiving. Raises UnknownQueue."""
        self.pauses.pause(queue)

    def resume(self, queue: str) -> None:
        """Have the pools of this queue receive again. Raises UnknownQueue."""
        self.pauses.resume(queue)

    async def reload(self, *, everything: bool) -> str:
        """Take the configuration as it is now into use; what was done. Raises NotReloaded."""
        if self._reloader is None:
            raise NotReloaded("this daemon cannot read its configuration again")
        outcome = await self._reloader.ask(everything=everything).outcome()
        if outcome.result is not ReloadResult.OK:
            raise NotReloaded(outcome.text)
        return outcome.text

    async def restart(self, child: str) -> str:
        """Replace the process of a child, or those of a pool. Raises UnknownChild, NotReplaced."""
        assert self._tasks is not None
        return await self._replacements.restart(self._tasks, child)

    def dump(self) -> str:
        """Have every process write its stacks to standard error."""
        return self._dumps.dump()

    def unsettled_dead(self) -> tuple[Address, ...]:
        """Dead owners whose leases have not all been given back yet."""
        return self._estates.unsettled()

    def broken_invariants(self) -> Sequence[str]:
        """What should never be, and only ends with a restart of the whole."""
        return broken_invariants(self.lives, boottime(), self._end_at)

    async def run(self, serve: Callable[[], Coroutine[Any, Any, None]]) -> ExitCode:
        """Run the children, and `serve` beside them, until a signal or a surrender ends it.

        `serve` answers HTTP; it is cancelled last, so that a drain can be watched.
        """
        # Opened before the first child is started, so that no moment is deaf to a signal.
        with self._dumps.receiving(*SIGNALS) as signals:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._heed_signals, signals)
                tasks.start_soon(serve)
                tasks.start_soon(self._notifier.feed_watchdog, self.broken_invariants)
                tasks.start_soon(self._notifier.send_again)
                tasks.start_soon(self._watch_own_lag)
                tasks.start_soon(self._switchboard.pass_on_leases)
                tasks.start_soon(bury_orphans)
                if self._reloader is not None:
                    tasks.start_soon(self._reloader.run, self._started)
                await self._crew.run(self._end_the_extender)
                tasks.cancel_scope.cancel()
        return self._verdict()

    def _end_the_extender(self) -> None:
        """It ends last, since it gives back what killed pools held."""
        self._estates.give_all_back()
        now = boottime()
        escalation = self._crew.settings.supervisor.escalation_seconds
        self._crew.stop_extender.give(Timetable.of_extender(now, self._end_at or now, escalation))

    def stop(self, why: str, fatal: ExitCode | None = None) -> None:
        """Begin to stop; later calls change nothing but the first fatal reason."""
        self._fatal = self._fatal or fatal
        if self.stopping:
            return
        supervisor = self._crew.settings.supervisor
        now = boottime()
        self._end_at = now + supervisor.grace_seconds
        log.info("stopping", extra={"why": why, "grace_seconds": supervisor.grace_seconds})
        self._observer.stopping()
        self._notifier.stopping()
        if self._tasks is not None:
            self._tasks.start_soon(
                self._notifier.extend_timeout, lambda: not self.broken_invariants()
            )
        self._crew.stop_workers.give(
            Timetable.of_workers(now, supervisor.grace_seconds, supervisor.escalation_seconds)
        )
        self._replacements.abort()
        if self._reloader is not None:
            self._reloader.abort()

    def _hurry(self) -> None:
        log.warning("stopping at once")
        self._crew.stop_workers.hurry()
        self._crew.stop_extender.hurry()

    async def _heed_signals(self, signals: Any) -> None:
        interrupted = False
        async for number in signals:
            match number:
                case signal.SIGINT if interrupted:
                    self._hurry()
                case signal.SIGINT:
                    interrupted = True
                    self.stop("SIGINT")
                case signal.SIGTERM:
                    self.stop("SIGTERM")
                case signal.SIGHUP if self._reloader is not None:
                    self._reloader.ask()
                case signal.SIGUSR1:
                    self._dumps.pass_on()
                case _:
                    log.warning("signal ignored", extra={"signal": int(number)})

    async def _watch_own_lag(self) -> None:
        while True:
            before = boottime()
            await anyio.sleep(LAG_SAMPLE_SECONDS)
            self._observer.loop_lag(boottime() - before - LAG_SAMPLE_SECONDS)

    # What a life tells its surroundings.

    def attach(self, link: Link, welcome: Welcome) -> None:
        self._switchboard.attach(link, welcome)

    def took(self, sender: Address, message: Message) -> None:
        self._switchboard.took(sender, message)

    def became_ready(self, life: Life) -> None:
        if life.spec.slot.kind is Kind.EXTENDER:
            self._switchboard.extender_ready()
        # Not "all are ready now": a pool that keeps failing may be what a reload is to mend.
        if all(each.ever_ready for each in self.lives):
            self._started.set()
        self._note_readiness()

    def took_over(self, address: Address) -> None:
        self._estates.taken_over(address.name)

    def due(self, life: Life, number: int, reason: RestartReason) -> None:
        assert self._tasks is not None
        self._replacements.due(self._tasks, life, number, reason)

    def suspects_of(self, end: End) -> tuple[Suspect, ...]:
        return self._switchboard.suspects_of(end.address, _why(end), end.identity)

    def ended(self, life: Life, end: End) -> None:
        self._switchboard.detach(end.address)
        self._book.retire(end.address)
        self._note_readiness()
        if not self._estates.left_by(end.address, _why(end)):
            return
        if life.leaving and not self.stopping:  # no successor will come
            self._estates.give_back(end.address)
        else:
            assert self._tasks is not None
            self._tasks.start_soon(self._estates.await_successor, end.address)

    def _removed(self, life: Life) -> None:
        self._book.forget(life.name)
        self.pauses.forget_strangers()
        self._note_readiness()

    def surrendered(self, life: Life, code: ExitCode, why: str) -> None:
        """A consumer that once worked is tried again slowly; anything else ends the daemon."""
        facts = {"child": life.name, "why": why or "see its log above"}
        if life.spec.slot.kind is Kind.CONSUMER and code is ExitCode.RESTART_LIMIT:
            log.error("child keeps failing; tried again slowly", extra=facts)
            return
        log.error("giving up", extra={**facts, "exit_code": int(code)})
        self.stop(f"{life.name} gave up", code)

    def _note_readiness(self) -> None:
        ready = all(life.ready for life in self.lives) and not self.stopping
        self._observer.ready(ready)
        if ready and not self._once_ready:
            self._once_ready = True
            log.info("ready", extra={"children": len(self.lives)})
        reloading = self._reloader is not None and self._reloader.busy
        if ready and not reloading:  # READY=1 would say that the reload is over
            self._notifier.ready()
        elif not self.stopping:
            up = sum(life.ready for life in self.lives)
            doing = "reloading, " if reloading else ""
            self._notifier.status(f"{doing}{up}/{len(self.lives)} children ready")

    def _verdict(self) -> ExitCode:
        if self._fatal is not None:
            return self._fatal
        if any(life.overran for life in self.lives):
            return ExitCode.DRAIN_DEADLINE
        return ExitCode.OK


def _why(end: End) -> str:
    return end.reason.value if end.reason is not None else PLANNED
