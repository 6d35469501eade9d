"""The life of one child's slot: one incarnation after another, until a stop or a surrender."""

import logging
import signal
from typing import Protocol
from uuid import UUID, uuid4

import anyio

from outboxd.channels.protocol import (
    Address,
    Bye,
    Drain,
    Heartbeat,
    Message,
    Ready,
    Suspect,
    SuspectsRecorded,
    Welcome,
)
from outboxd.core.children import ChildSpec
from outboxd.core.clock import boottime
from outboxd.core.exit_codes import ExitCode
from outboxd.core.restarts import RestartLimits, RestartLog
from outboxd.core.retry import Backoff
from outboxd.core.settings import Settings, SupervisorSettings
from outboxd.pacing import pause
from outboxd.supervision.call_watch import CallWatch
from outboxd.supervision.clocks import Deadlines, watch_clocks
from outboxd.supervision.incarnation import End, Incarnation
from outboxd.supervision.link import Link
from outboxd.supervision.observing import RestartReason, State, SupervisorObserver
from outboxd.supervision.process import Spawn
from outboxd.supervision.stopping import StopOrder
from outboxd.supervision.suspicions import Suspicions

log = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 2.0
"""How long a dead child's socket is read on when a grandchild holds its other end open."""

REMEMBERED_PREDECESSORS = 8


class Surroundings(Protocol):
    """What a life needs from the supervisor around it."""

    def attach(self, link: Link, welcome: Welcome) -> None:
        """A new incarnation can be told things, the welcome first."""

    def took(self, sender: Address, message: Message) -> None:
        """An incarnation said something that is not about its own life."""

    def became_ready(self, life: "Life") -> None:
        """An incarnation is ready."""

    def took_over(self, address: Address) -> None:
        """An incarnation is ready, and what its predecessors may have died of is written down, so
        that what they held may be given back."""

    def suspects_of(self, end: End) -> tuple[Suspect, ...]:
        """What an incarnation that has come to grief may have died of."""

    def ended(self, life: "Life", end: End) -> None:
        """An incarnation has been reaped, and its socket read to the end."""

    def surrendered(self, life: "Life", code: ExitCode, why: str) -> None:
        """This slot's limits are used up, or it said `why` it cannot work as things are."""


class Life:
    """Keeps one child running. A life is a straight line; stopping is a task beside it."""

    def __init__(
        self,
        spec: ChildSpec,
        settings: Settings,
        surroundings: Surroundings,
        observer: SupervisorObserver,
        order: StopOrder,
        spawn: Spawn,
    ) -> None:
        self.spec = spec
        self.state = State.STOPPED
        self.current: Incarnation | None = None
        self.restarts = 0
        self.overran = False
        self.ever_ready = False
        self._settings = settings
        self._surroundings = surroundings
        self._observer = observer
        self._order = order
        self._spawn = spawn
        self._number = 0
        self._predecessors: tuple[UUID, ...] = ()
        self._deadlines = Deadlines(
            settings.supervisor.start_deadline_seconds, spec.heartbeat_deadline_seconds
        )
        self._suspicions = Suspicions(spec.name)
        self._restart_log = RestartLog(restart_limits(settings.supervisor))

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def ready(self) -> bool:
        return self.state is State.READY

    async def live(self) -> None:
        """Run until ordered to stop; on unplanned ends start again, within the limits."""
        while not self._order.given.is_set():
            end = await self._run_once()
            # A stop kills what does not end in time; that says nothing about the messages.
            if end.crashed and not self._order.given.is_set():
                self._suspicions.add(self._surroundings.suspects_of(end))
            self._surroundings.ended(self, end)  # from here on its leases may be given back
            if not self._order.given.is_set():
                await self._before_next_start(end)
        self._suspicions.close()
        self._enter(State.STOPPED)

    async def _before_next_start(self, end: End) -> None:
        if end.reason is None:
            return
        self.restarts += 1
        if not end.crashed:
            log.warning("child will be started again at once", extra=self._facts(end))
            return
        self._count(end)
        # One that says itself that it cannot work is not asked again and again.
        if self._restart_log.exhausted or end.exit_code == ExitCode.NEVER_READY:
            await self._give_up(end)
            return
        seconds = self._restart_log.pause_seconds()
        self._observer.child_backoff(self.name, seconds)
        self._enter(State.BACKOFF)
        log.warning("child will be started again", extra=self._facts(end, in_seconds=seconds))
        await pause(self._order.given, seconds)
        self._observer.child_backoff(self.name, 0.0)

    def _count(self, end: End) -> None:
        if end.ready_seconds is None:
            self._restart_log.never_ready()
        else:
            self._restart_log.crashed(boottime(), end.ready_seconds)

    async def _give_up(self, end: End) -> None:
        code = ExitCode.RESTART_LIMIT if self.ever_ready else ExitCode.NEVER_READY
        self._enter(State.FAILED)
        self._surroundings.surrendered(self, code, end.last_word)
        await pause(self._order.given, self._settings.supervisor.failed_retry_seconds)
        self._restart_log.forgive()

    async def _run_once(self) -> End:
        self._number += 1
        address, identity = Address(self.name, self._number), uuid4()
        self._enter(State.STARTING)
        self._observer.child_started(self.name)
        try:
            process = await self._spawn(self.name)
        except OSError as error:
            log.error("child cannot be started", extra={"child": self.name, "error": str(error)})
            return End(address, identity, ExitCode.UNEXPECTED, RestartReason.CRASH, None)
        calls = CallWatch(self.spec.call_limit_seconds, self.spec.heartbeat_deadline_seconds)
        incarnation = Incarnation(address, identity, process, self._observer, calls)
        self.current = incarnation
        try:
            exit_code = await self._accompany(incarnation)
        finally:
            self.current = None
            incarnation.link.close()
            await process.close()
        self._predecessors = (*self._predecessors, incarnation.identity)[-REMEMBERED_PREDECESSORS:]
        if exit_code == ExitCode.DRAIN_DEADLINE:
            self.overran = True
        end = incarnation.end(exit_code, stopping=self._order.given.is_set())
        self._observer.child_ended(self.name, exit_code, end.reason)
        return end

    async def _accompany(self, incarnation: Incarnation) -> int:
        self._surroundings.attach(
            incarnation.link,
            Welcome(
                self._settings,
                incarnation.address,
                incarnation.identity,
                self._predecessors,
                self._suspicions.suspects,
            ),
        )
        read_to_end = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(incarnation.link.write_frames)
            tasks.start_soon(self._read, incarnation, read_to_end)
            tasks.start_soon(watch_clocks, incarnation, self._deadlines, self._order)
            tasks.start_soon(self._stop_when_ordered, incarnation)
            exit_code = await incarnation.ended()
            # What it said last counts: nothing is concluded before its socket is read to the end.
            with anyio.move_on_after(LAST_WORDS_SECONDS):
                await read_to_end.wait()
            tasks.cancel_scope.cancel()
        return exit_code

    async def _read(self, incarnation: Incarnation, read_to_end: anyio.Event) -> None:
        def took(message: Message) -> None:
            self._observer.frame_passed(self.name, "from_child")
            self._took(incarnation, message)

        error = await incarnation.link.read_frames(took)
        read_to_end.set()
        if error is not None:
            log.error(
                "child broke the protocol",
                extra={"child": str(incarnation.address), "error": str(error)},
            )
            await incarnation.put_down(RestartReason.PROTOCOL)

    def _took(self, incarnation: Incarnation, message: Message) -> None:
        match message:
            case Ready():
                self._became_ready(incarnation)
            case SuspectsRecorded():
                self._suspicions.written_down()
                self._take_over(incarnation)
            case Heartbeat():
                incarnation.beat(message)
                self._observer.heartbeat(self.name, message)
                self._observer.frames_queued(self.name, incarnation.link.queued)
            case Bye(reason=reason):
                incarnation.last_word = reason
                self._surroundings.took(incarnation.address, message)
            case _:
                self._surroundings.took(incarnation.address, message)

    def _became_ready(self, incarnation: Incarnation) -> None:
        incarnation.ready_at = incarnation.heard_at = boottime()
        incarnation.became_ready.set()
        self.ever_ready = True
        self._observer.child_ready(self.name, incarnation.ready_at - incarnation.started_at)
        if not self._order.given.is_set():
            self._enter(State.READY)
        self._surroundings.became_ready(self)
        self._take_over(incarnation)

    def _take_over(self, incarnation: Incarnation) -> None:
        """Whichever comes last, its readiness or its record of the suspects: whoever gets these
        messages next has to find them suspected."""
        if incarnation.ready_at is not None and not self._suspicions.suspects:
            self._surroundings.took_over(incarnation.address)

    async def _stop_when_ordered(self, incarnation: Incarnation) -> None:
        order = self._order
        await order.given.wait()
        self._enter(State.DRAINING)
        if not order.hurried:
            incarnation.link.tell(Drain(order.timetable.drain_by))
            incarnation.process.signal(signal.SIGTERM)
            await order.until(order.timetable.abort_at)
        self.overran = True
        if not order.hurried:
            log.error("drain deadline passed", extra={"child": str(incarnation.address)})
            incarnation.process.signal(signal.SIGABRT)
            await order.until(order.timetable.kill_at)
        incarnation.kill()

    def _enter(self, state: State) -> None:
        if state is not self.state:
            self.state = state
            self._observer.child_state(self.name, self.spec.slot.kind, state)
            log.info("child changed state", extra={"child": self.name, "state": state.value})

    def _facts(self, end: End, **more: object) -> dict[str, object]:
        reason = end.reason.value if end.reason is not None else "planned"
        return {"child": self.name, "exit_code": end.exit_code, "reason": reason, **more}


def restart_limits(settings: SupervisorSettings) -> RestartLimits:
    """The limits of every child, from the [supervisor] table."""
    return RestartLimits(
        failed_starts=settings.failed_starts,
        crashes=settings.crashes,
        crash_window_seconds=settings.crash_window_seconds,
        backoff=Backoff(
            first_seconds=settings.backoff_first_seconds,
            cap_seconds=settings.backoff_cap_seconds,
            jitter=1.0,
        ),
    )
