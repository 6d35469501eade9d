"""What the supervisor does beside one living process: write, read, watch, and end it in order."""

import logging
import signal
from collections.abc import Callable

import anyio

from outboxd.channels.protocol import Drain, Message
from outboxd.core.clock import boottime
from outboxd.supervision.clocks import Deadlines, watch_clocks
from outboxd.supervision.incarnation import Incarnation
from outboxd.supervision.observing import RestartReason, SupervisorObserver

log = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 2.0
"""How long a dead child's socket is read on when a grandchild holds its other end open."""


class Attendance:
    """Accompanies one incarnation from its welcome until it has been reaped."""

    def __init__(
        self,
        incarnation: Incarnation,
        deadlines: Deadlines,
        observer: SupervisorObserver,
        took: Callable[[Message], None],
        draining: Callable[[], None],
    ) -> None:
        self._incarnation = incarnation
        self._deadlines = deadlines
        self._observer = observer
        self._took = took
        self._draining = draining

    async def until_reaped(self) -> int:
        """The exit status, once the process has ended and all that it said has been read."""
        incarnation = self._incarnation
        read_to_end = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(incarnation.link.write_frames)
            tasks.start_soon(self._read, read_to_end)
            tasks.start_soon(watch_clocks, incarnation, self._deadlines, incarnation.order)
            tasks.start_soon(self._end_when_ordered)
            exit_code = await incarnation.ended()
            # What it said last counts: nothing is concluded before its socket is read to the end.
            with anyio.move_on_after(LAST_WORDS_SECONDS):
                await read_to_end.wait()
            tasks.cancel_scope.cancel()
        return exit_code

    async def _read(self, read_to_end: anyio.Event) -> None:
        def took(message: Message) -> None:
            self._observer.frame_passed(self._incarnation.address.name, "from_child")
            self._took(message)

        error = await self._incarnation.link.read_frames(took)
        read_to_end.set()
        if error is not None:
            log.error(
                "child broke the protocol",
                extra={"child": str(self._incarnation.address), "error": str(error)},
            )
            await self._incarnation.put_down(RestartReason.PROTOCOL)

    async def _end_when_ordered(self) -> None:
        incarnation, order = self._incarnation, self._incarnation.order
        await order.given.wait()
        self._draining()
        # A stop that comes while it drains for another reason brings an earlier end: told again.
        while not order.hurried and boottime() < order.timetable.abort_at:
            self._tell_drain()
            await order.until(order.timetable.abort_at)
        incarnation.overran = True
        if not order.hurried:
            log.error("drain deadline passed", extra={"child": str(incarnation.address)})
            incarnation.process.signal(signal.SIGABRT)
        while not order.hurried and boottime() < order.timetable.kill_at:
            await order.until(order.timetable.kill_at)
        incarnation.kill()

    def _tell_drain(self) -> None:
        incarnation = self._incarnation
        incarnation.link.tell(Drain(incarnation.order.timetable.drain_by))
        # By itself a signal means the grace of a stop, and a replacement may take longer; but one
        # that is still starting does not read its mail.
        if incarnation.planned is None or incarnation.ready_at is None:
            incarnation.process.signal(signal.SIGTERM)
