"""The life of one child's slot: one incarnation after another, until a stop or a surrender."""

import logging
from uuid import UUID, uuid4

import anyio

from outboxd.channels.protocol import (
    Address,
    Bye,
    Heartbeat,
    Message,
    Ready,
    SuspectsRecorded,
    Welcome,
)
from outboxd.core.children import ChildSpec
from outboxd.core.clock import boottime
from outboxd.core.exit_codes import ExitCode
from outboxd.core.recycling import RecycleWatch, drawn
from outboxd.core.reloading import Terms
from outboxd.core.restarts import RestartLog, restart_limits
from outboxd.core.settings import SupervisorSettings
from outboxd.supervision.attendance import Attendance
from outboxd.supervision.call_watch import CallWatch
from outboxd.supervision.clocks import Deadlines
from outboxd.supervision.incarnation import End, Incarnation
from outboxd.supervision.milestones import Milestones
from outboxd.supervision.observing import RestartReason, State, SupervisorObserver
from outboxd.supervision.process import Spawn
from outboxd.supervision.stopping import StopOrder, Timetable
from outboxd.supervision.surroundings import Surroundings
from outboxd.supervision.suspicions import Suspicions

log = logging.getLogger(__name__)

REMEMBERED_PREDECESSORS = 8

TRIAL_SECONDS = 60.0
"""How long a child that failed its trial waits for what is decided about it."""


class Life:
    """Keeps one child running. A life is a straight line; stopping is a task beside it."""

    def __init__(
        self,
        terms: Terms,
        supervisor: SupervisorSettings,
        surroundings: Surroundings,
        observer: SupervisorObserver,
        order: StopOrder,
        spawn: Spawn,
        *,
        on_trial: bool = False,
    ) -> None:
        self.terms = terms
        self.state = State.STOPPED
        self.current: Incarnation | None = None
        self.restarts = 0
        self.overran = False
        self.ever_ready = False
        self._last_end: End | None = None
        self.deadlines = Deadlines(
            supervisor.start_deadline_seconds, terms.spec.heartbeat_deadline_seconds
        )
        self._supervisor = supervisor
        self._surroundings = surroundings
        self._observer = observer
        self._order = order.part()
        self._spawn = spawn
        self._number = 0
        self._milestones = Milestones()
        self._on_trial = on_trial
        self._wanted: RestartReason | None = None
        self._resting: anyio.CancelScope | None = None
        self._predecessors: tuple[UUID, ...] = ()
        self._suspicions = Suspicions(terms.spec.name)
        self._restart_log = RestartLog(restart_limits(supervisor))

    @property
    def spec(self) -> ChildSpec:
        return self.terms.spec

    @property
    def name(self) -> str:
        return self.terms.spec.name

    @property
    def ready(self) -> bool:
        return self.state is State.READY

    @property
    def leaving(self) -> bool:
        """Whether no successor of the current incarnation will come."""
        return self._order.given.is_set()

    @property
    def last_told(self) -> str:
        """For a person: what its last process came to."""
        return "see its log" if self._last_end is None else self._last_end.told

    def adopt(self, terms: Terms, supervisor: SupervisorSettings) -> None:
        """Run by these from the next start on."""
        self.terms = terms
        self._supervisor = supervisor
        self._restart_log.limits = restart_limits(supervisor)

    def retire(self) -> None:
        """Begin to end for good, with as much time as a replacement gets."""
        self._order.give(self._timetable())
        self._disturb()

    async def renew(self, reason: RestartReason, *, on_trial: bool = False) -> bool:
        """Have the process finish and a successor started at once; whether that became ready.

        A slot that waits for its next start, or has given up, does not wait any longer. `on_trial`
        says that an end before it is ready is no failure of the slot: nothing is counted, and it
        stays ended until it is renewed again. False also when the slot is to end.
        """
        before = self._number
        self._on_trial = on_trial
        self._wanted = reason
        if self.current is not None:
            self.current.replace(reason, self._timetable())
        self._disturb()
        return await self.settled(before)

    async def settled(self, before: int = 0) -> bool:
        """Wait for the first incarnation after the one of that number; whether it became ready."""
        return await self._milestones.next_is_ready(before)

    async def retired(self) -> None:
        """Return once the slot has no process any more, and will have none."""
        await self._milestones.no_other_comes()

    async def live(self) -> None:
        """Run until ordered to stop; on unplanned ends start again, within the limits."""
        while not self._order.given.is_set():
            self._last_end = end = await self._run_once()
            # A stop kills what does not end in time; that says nothing about the messages.
            if end.crashed and not self._order.given.is_set():
                self._suspicions.add(self._surroundings.suspects_of(end))
            self._surroundings.ended(self, end)  # from here on its leases may be given back
            self._milestones.ended(self._number)
            if not self._order.given.is_set():
                await self._before_next_start(end)
        self._suspicions.close()
        self._enter(State.STOPPED)
        self._milestones.over()

    async def _before_next_start(self, end: End) -> None:
        if end.reason is not None:
            self.restarts += 1
        if self._wanted is not None:  # by somebody who does not want to wait
            self._restart_log.forgive()
            return
        if self._on_trial and end.ready_seconds is None:
            log.warning("child did not become ready", extra=self._facts(end))
            self._enter(State.BACKOFF)
            await self._rest(TRIAL_SECONDS)
            return
        if end.reason is None:
            return
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
        await self._rest(seconds)
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
        await self._rest(self._supervisor.failed_retry_seconds)
        self._restart_log.forgive()

    async def _rest(self, seconds: float) -> None:
        """Until then, or until the slot is to end or is renewed."""
        with anyio.move_on_after(seconds) as self._resting:
            await self._order.given.wait()
        self._resting = None

    def _disturb(self) -> None:
        if self._resting is not None:
            self._resting.cancel()

    async def _run_once(self) -> End:
        self._number += 1
        self._wanted = None
        address, identity = Address(self.name, self._number), uuid4()
        self._enter(State.STARTING)
        self._observer.child_started(self.name)
        try:
            process = await self._spawn(self.name)
        except OSError as error:
            log.error("child cannot be started", extra={"child": self.name, "error": str(error)})
            why = f"cannot be started: {error}"
            return End(address, identity, ExitCode.UNEXPECTED, RestartReason.CRASH, None, why)
        spec = self.spec
        incarnation = Incarnation(
            address,
            identity,
            process,
            self._observer,
            self._order.part(),
            CallWatch(spec.call_limit_seconds, spec.heartbeat_deadline_seconds),
            RecycleWatch(drawn(spec.recycle)),
            spec.drain_seconds,
        )
        self.current = incarnation
        self.deadlines = Deadlines(
            self._supervisor.start_deadline_seconds, spec.heartbeat_deadline_seconds
        )
        try:
            exit_code = await self._accompany(incarnation)
        finally:
            self.current = None
            incarnation.link.close()
            await process.close()
        self._predecessors = (*self._predecessors, incarnation.identity)[-REMEMBERED_PREDECESSORS:]
        if self._order.given.is_set():
            self.overran |= incarnation.overran or exit_code == ExitCode.DRAIN_DEADLINE
        end = incarnation.end(exit_code, stopping=self._order.given.is_set())
        self._observer.child_ended(self.name, exit_code, end.reason)
        return end

    async def _accompany(self, incarnation: Incarnation) -> int:
        self._surroundings.attach(
            incarnation.link,
            Welcome(
                self.terms.settings,
                incarnation.address,
                incarnation.identity,
                self._predecessors,
                self._suspicions.suspects,
            ),
        )
        if self._wanted is not None:  # since the process was spawned
            incarnation.replace(self._wanted, self._timetable())
        attendance = Attendance(
            incarnation,
            self.deadlines,
            self._observer,
            took=lambda message: self._took(incarnation, message),
            draining=lambda: self._enter(State.DRAINING),
        )
        return await attendance.until_reaped()

    def _took(self, incarnation: Incarnation, message: Message) -> None:
        match message:
            case Ready():
                self._became_ready(incarnation)
            case SuspectsRecorded():
                self._suspicions.written_down()
                self._take_over(incarnation)
            case Heartbeat():
                if (reason := incarnation.beat(message)) is not None:
                    self._surroundings.due(self, incarnation.address.incarnation, reason)
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
        if not incarnation.order.given.is_set():
            self._on_trial = False
            self._enter(State.READY)
            self._milestones.became_ready(incarnation.address.incarnation)
        self._surroundings.became_ready(self)
        self._take_over(incarnation)

    def _take_over(self, incarnation: Incarnation) -> None:
        """Whichever comes last, its readiness or its record of the suspects: whoever gets these
        messages next has to find them suspected."""
        if incarnation.ready_at is not None and not self._suspicions.suspects:
            self._surroundings.took_over(incarnation.address)

    def _timetable(self) -> Timetable:
        now = boottime()
        patience = self.spec.drain_seconds
        if (current := self.current) is not None:
            patience = current.drain_seconds
            if current.ready_at is None:  # it has nothing in hand; its start is bounded as ever
                patience = min(patience, max(0.0, self.deadlines.overdue_at(current) - now))
        return Timetable.of_replacement(now, patience, self._supervisor.escalation_seconds)

    def _enter(self, state: State) -> None:
        if state is not self.state:
            self.state = state
            self._observer.child_state(self.name, self.spec.slot.kind, state)
            log.info("child changed state", extra={"child": self.name, "state": state.value})

    def _facts(self, end: End, **more: object) -> dict[str, object]:
        reason = end.reason.value if end.reason is not None else "planned"
        return {"child": self.name, "exit_code": end.exit_code, "reason": reason, **more}
