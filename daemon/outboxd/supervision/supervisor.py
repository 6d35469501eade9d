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
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import Settings
from outboxd.pacing import pause
from outboxd.supervision.incarnation import End
from outboxd.supervision.ledger import Ledger
from outboxd.supervision.life import Life
from outboxd.supervision.link import Link
from outboxd.supervision.metrics import MetricsBook
from outboxd.supervision.observing import SupervisorObserver
from outboxd.supervision.pauses import Pauses
from outboxd.supervision.process import Spawn, spawn
from outboxd.supervision.sd_notify import Notifier
from outboxd.supervision.stopping import StopOrder, Timetable
from outboxd.supervision.switchboard import Switchboard

log = logging.getLogger(__name__)

SUCCESSOR_SECONDS = 10.0
"""How long a dead pool's leases wait for its successor before they are given back anyway."""

LAG_SAMPLE_SECONDS = 1.0

PLANNED = "planned"
"""Stands for the reason of an end that has none."""


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
    ) -> None:
        self._settings = settings
        self._observer = observer
        self._book = book
        self._notifier = notifier
        self._spawn = spawn
        self._switchboard = Switchboard(Ledger(), book.took)
        self.pauses = Pauses(
            (spec.slot.queue for spec in specs if spec.slot.queue), self._switchboard, observer
        )
        self._stop_workers = StopOrder()
        self._stop_extender = StopOrder()
        self._fatal: ExitCode | None = None
        self._once_ready = False
        self._end_at = 0.0
        self._dead: dict[Address, str] = {}
        self._tasks: TaskGroup | None = None
        self.lives = tuple(self._life(spec) for spec in specs)

    def _life(self, spec: ChildSpec) -> Life:
        order = self._stop_extender if spec.slot.kind is Kind.EXTENDER else self._stop_workers
        return Life(spec, self._settings, self, self._observer, order, self._spawn)

    @property
    def stopping(self) -> bool:
        return self._stop_workers.given.is_set()

    def pause(self, queue: str) -> None:
        """Have the pools of this queue stop receiving. Raises UnknownQueue."""
        self.pauses.pause(queue)

    def resume(self, queue: str) -> None:
        """Have the pools of this queue receive again. Raises UnknownQueue."""
        self.pauses.resume(queue)

    def unsettled_dead(self) -> tuple[Address, ...]:
        """Dead owners whose leases have not all been given back yet."""
        return self._switchboard.unsettled_dead(self._dead)

    async def run(self, serve: Callable[[], Coroutine[Any, Any, None]]) -> ExitCode:
        """Run the children, and `serve` beside them, until a signal or a surrender ends it.

        `serve` answers HTTP; it is cancelled last, so that a drain can be watched.
        """
        # Opened before the first child is started, so that no moment is deaf to a signal.
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._heed_signals, signals)
                tasks.start_soon(serve)
                tasks.start_soon(self._notifier.feed_watchdog)
                tasks.start_soon(self._watch_own_lag)
                await self._run_children()
                tasks.cancel_scope.cancel()
        return self._verdict()

    async def _run_children(self) -> None:
        extenders = [life for life in self.lives if life.spec.slot.kind is Kind.EXTENDER]
        async with anyio.create_task_group() as until_last:
            for life in extenders:
                until_last.start_soon(life.live)
            async with anyio.create_task_group() as workers:
                for life in self.lives:
                    if life not in extenders:
                        workers.start_soon(life.live)
            # The extender ends last: it gives back what killed pools held.
            for dead in list(self._dead):
                self._give_back(dead)
            self._stop_extender.give(
                Timetable.of_extender(
                    boottime(), self._end_at, self._settings.supervisor.escalation_seconds
                )
            )

    def stop(self, why: str, fatal: ExitCode | None = None) -> None:
        """Begin to stop; later calls change nothing but the first fatal reason."""
        self._fatal = self._fatal or fatal
        if self.stopping:
            return
        supervisor = self._settings.supervisor
        now = boottime()
        self._end_at = now + supervisor.grace_seconds
        log.info("stopping", extra={"why": why, "grace_seconds": supervisor.grace_seconds})
        self._observer.stopping()
        self._notifier.stopping()
        self._stop_workers.give(
            Timetable.of_workers(now, supervisor.grace_seconds, supervisor.escalation_seconds)
        )

    def _hurry(self) -> None:
        log.warning("stopping at once")
        self._stop_workers.hurry()
        self._stop_extender.hurry()

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
                case _:
                    log.warning("SIGHUP is ignored: restart outboxd to use a new configuration")

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
        self._note_readiness()

    def took_over(self, address: Address) -> None:
        for dead in [owner for owner in self._dead if owner.name == address.name]:
            self._give_back(dead)

    def suspects_of(self, end: End) -> tuple[Suspect, ...]:
        reason = end.reason.value if end.reason is not None else PLANNED
        return self._switchboard.suspects_of(end.address, reason, end.identity)

    def ended(self, life: Life, end: End) -> None:
        self._switchboard.detach(end.address)
        self._book.retire(end.address)
        self._note_readiness()
        if self._switchboard.held_by(end.address):
            self._dead[end.address] = end.reason.value if end.reason is not None else PLANNED
            assert self._tasks is not None
            self._tasks.start_soon(self._await_successor, end.address)

    async def _await_successor(self, dead: Address) -> None:
        """Have a dead owner's leases given back, at the latest after a bound.

        Its successor should be ready by then, and have written down what it may have died of.
        """
        await pause(self._stop_workers.given, SUCCESSOR_SECONDS)
        self._give_back(dead)

    def _give_back(self, dead: Address) -> None:
        if (why := self._dead.pop(dead, None)) is not None:
            self._switchboard.owner_gone(dead, why)

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
        if ready:
            self._notifier.ready()
        elif not self.stopping:
            up = sum(life.ready for life in self.lives)
            self._notifier.status(f"{up}/{len(self.lives)} children ready")

    def _verdict(self) -> ExitCode:
        if self._fatal is not None:
            return self._fatal
        if any(life.overran for life in self.lives):
            return ExitCode.DRAIN_DEADLINE
        return ExitCode.OK
