"""One incarnation of a child: its process, its channel, and how it came to its end."""

import logging
import signal
from uuid import UUID

import anyio
import msgspec

from outboxd.channels.protocol import Address, Heartbeat
from outboxd.core.clock import boottime
from outboxd.core.exit_codes import ExitCode
from outboxd.core.recycling import RecycleWatch
from outboxd.supervision.call_watch import CallWatch
from outboxd.supervision.link import Link
from outboxd.supervision.observing import RestartReason, SupervisorObserver
from outboxd.supervision.process import ChildProcess
from outboxd.supervision.stopping import StopOrder, Timetable

log = logging.getLogger(__name__)

DUMP_SECONDS = 1.5
"""What a child gets between SIGABRT, which makes it write its stacks down, and SIGKILL."""

UNKILLABLE_SECONDS = 5.0
"""A process in an uninterruptible sleep does not even end by SIGKILL; the slot is left then."""

PLANNED = frozenset(
    {
        RestartReason.RECYCLE_AGE,
        RestartReason.RECYCLE_MESSAGES,
        RestartReason.RECYCLE_RSS,
        RestartReason.RELOAD,
        RestartReason.OPERATOR,
    }
)


class End(msgspec.Struct, frozen=True):
    """How the incarnation of that identity ended; no reason means that the daemon or the slot was
    to stop, or that it ended in good order by itself.

    HANDLER_TIMEOUT is an end that the child chose itself, in good order: nothing has crashed, and
    its successor need not wait.
    """

    address: Address
    identity: UUID
    exit_code: int
    reason: RestartReason | None
    ready_seconds: float | None
    last_word: str = ""

    @property
    def crashed(self) -> bool:
        """Whether the process came to grief, as opposed to one that ended in good order."""
        return not (
            self.reason is None
            or self.reason is RestartReason.HANDLER_TIMEOUT
            or self.reason in PLANNED
        )

    @property
    def told(self) -> str:
        """For a person: its own last word, or else what was seen of its end."""
        if self.last_word:
            return self.last_word
        reason = self.reason.value if self.reason is not None else "ended"
        return f"{reason}, exit code {self.exit_code}; see its log"


class Incarnation:
    """One process in the slot, from its spawn to its reaping."""

    def __init__(
        self,
        address: Address,
        identity: UUID,
        process: ChildProcess,
        observer: SupervisorObserver,
        order: StopOrder,
        calls: CallWatch,
        recycling: RecycleWatch,
        drain_seconds: float,
    ) -> None:
        """`drain_seconds` is what it may take to finish when it is replaced: that of the handlers
        that it runs, whatever configuration it is replaced for."""
        self.address = address
        self.identity = identity
        self.process = process
        self.link = Link(address, process.stream, self._wrote, self._cut_off)
        self.order = order
        self._observer = observer
        self.started_at = boottime()
        self.heard_at = self.started_at
        self.rearmed_at = 0.0
        self.ready_at: float | None = None
        self.heartbeat: Heartbeat | None = None
        self.calls = calls
        self._recycling = recycling
        self.drain_seconds = drain_seconds
        self.last_word = ""
        self.fault: RestartReason | None = None
        self.planned: RestartReason | None = None
        self.overran = False
        self.killed = anyio.Event()
        self.became_ready = anyio.Event()

    def beat(self, heartbeat: Heartbeat) -> RestartReason | None:
        """It said that it lives, and how it is; the reason, if it is to be recycled for that."""
        self.heard_at = boottime()
        self.heartbeat = heartbeat
        self.calls.seen(heartbeat.oldest_started_at, self.heard_at)
        if self.ready_at is None or self.order.given.is_set():
            return None
        age = self.heard_at - self.ready_at
        return self._recycling.due(heartbeat.handled, age, heartbeat.rss_bytes)

    def replace(self, reason: RestartReason, timetable: Timetable) -> None:
        """Have it finish and end, so that a successor can take its place."""
        if self.planned is None:
            self.planned = reason
        self.order.give(timetable)

    def _wrote(self) -> None:
        self._observer.frame_passed(self.address.name, "to_child")

    def _cut_off(self, why: str) -> None:
        """It cannot be controlled any more."""
        self._observer.frame_dropped(self.address.name, "to_child")
        if self.killed.is_set():
            return
        log.error("child is cut off", extra={"child": str(self.address), "why": why})
        self.blame(RestartReason.PROTOCOL)
        self.kill()

    def blame(self, reason: RestartReason) -> None:
        """Remember why it is being ended; the first reason is the true one."""
        if self.fault is None:
            self.fault = reason

    def kill(self) -> None:
        self.process.signal(signal.SIGKILL)
        self.killed.set()

    async def put_down(self, reason: RestartReason) -> None:
        """End it without drain, after its stacks have been written to its log."""
        self.blame(reason)
        self.process.signal(signal.SIGABRT)
        await anyio.sleep(DUMP_SECONDS)
        self.kill()

    def end(self, exit_code: int, *, stopping: bool) -> End:
        """How it ended, now that it has; `stopping` says that the slot was to stop anyway."""
        ready_seconds = None if self.ready_at is None else boottime() - self.ready_at
        reason = self._reason(exit_code)
        if stopping and reason is RestartReason.HANDLER_TIMEOUT:
            reason = None
        return End(self.address, self.identity, exit_code, reason, ready_seconds, self.last_word)

    def _reason(self, exit_code: int) -> RestartReason | None:
        if self.fault is not None:
            return self.fault
        if self.order.given.is_set() and self._as_ordered(exit_code):
            return self.planned
        if self.last_word and exit_code in (ExitCode.OK, ExitCode.DRAIN_DEADLINE):
            return None
        # One that was never ready has called no handler; if it ended so, it would at every start.
        if self.ready_at is not None and self.last_word and exit_code == ExitCode.HANDLER_TIMEOUT:
            return RestartReason.HANDLER_TIMEOUT
        return RestartReason.SIGNAL if exit_code < 0 else RestartReason.CRASH

    def _as_ordered(self, exit_code: int) -> bool:
        """Whether this is how a process ends that was told to. It may be too young to say goodbye,
        and one that takes too long is killed; but a drain is no excuse for a crash."""
        if self.overran or (self.last_word and exit_code == ExitCode.HANDLER_TIMEOUT):
            return True
        if exit_code in (ExitCode.OK, ExitCode.DRAIN_DEADLINE):
            return bool(self.last_word) or self.ready_at is None
        return exit_code == -signal.SIGTERM and self.ready_at is None

    async def ended(self) -> int:
        """The exit status; -9 also for a process that SIGKILL does not end within its bound."""
        status: list[int] = []

        async def reap() -> None:
            status.append(await self.process.wait())
            tasks.cancel_scope.cancel()

        async def bound() -> None:
            await self.killed.wait()
            await anyio.sleep(UNKILLABLE_SECONDS)
            log.error("child does not end by SIGKILL", extra={"child": str(self.address)})
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reap)
            tasks.start_soon(bound)
        return status[0] if status else -signal.SIGKILL
