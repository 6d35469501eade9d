"""Receives as many messages as there are free slots, and hands each to a worker."""

import logging
from collections.abc import Sequence

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.intake import Intake
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.pool import NO_HANDLER, Pool
from outboxd.actors.consumer.settling import Action, Settler
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.judging import RetryCause, call_again
from outboxd.core.message_plan import HideFor
from outboxd.core.messages import ReceivedMessage
from outboxd.pacing import pause
from outboxd.ports.queue import BATCH, Queue

log = logging.getLogger(__name__)

_FATAL = (OutageKind.MISSING, OutageKind.DENIED, OutageKind.CREDENTIALS)
"""What no waiting cures; still it is only tried less often, since a person may."""


class Receiver:
    """Never has more messages in hand than there are slots, and leaves none behind when it ends."""

    def __init__(
        self,
        pool: Pool,
        queue: Queue,
        leases: Leases,
        settler: Settler,
        work: MemoryObjectSendStream[Item],
    ) -> None:
        self._pool = pool
        self._queue = queue
        self._leases = leases
        self._settler = settler
        self._work = work
        self._intake = Intake(pool, leases)
        self._failures = 0
        self.first_poll = anyio.Event()
        """Set once a receive is on its way, or somebody else is to be waited for."""

    async def run(self) -> None:
        """Receive until stopping; the receive in flight then is joined, not thrown away."""
        while await self._wait_for_room():
            await self._wait_for_company()
            if room := self._room():
                await self._receive(room)

    def _room(self) -> int:
        """How many messages to receive now."""
        if self._pool.stopping.is_set() or not self._pool.gates.open:
            return 0
        return self._pool.hand.room()

    async def _wait_for_room(self) -> bool:
        """Return once there is room for a message; False when stopping."""
        while not self._pool.stopping.is_set():
            if self._room():
                return True
            if not self._pool.gates.open:
                self.first_poll.set()  # it waits for somebody else: that is as ready as it gets
            await self._pool.change.wait()
        return False

    async def _wait_for_company(self) -> None:
        """Give a slot that has just become free a moment to be joined by others.

        SQS bills by the call, and each call costs a Hold as well: receiving for every single slot
        took four times as many receives.
        """
        enough = min(BATCH, self._pool.settings.concurrency)
        with anyio.move_on_after(self._pool.timing.gather_seconds):
            while 0 < self._room() < enough:
                await self._pool.change.wait()

    async def _receive(self, room: int) -> None:
        received_at = self._pool.clock()
        self.first_poll.set()
        try:
            messages = await self._queue.receive(room, self._pool.settings.wait_seconds)
        except Unavailable as error:
            await self._endure(error)
            return
        self._failures = 0
        self._pool.progress.last_receive_at = self._pool.clock()
        self._pool.observer.received(len(messages), sum(m.receive_count > 1 for m in messages))
        if messages:
            await self._take_in(messages, received_at)
        elif not self._pool.settings.wait_seconds:
            await pause(self._pool.stopping, self._pool.timing.short_poll_seconds)

    async def _take_in(self, messages: Sequence[ReceivedMessage], received_at: float) -> None:
        if self._pool.clock() >= received_at + self._pool.settings.visibility_seconds:
            # This process stood still: the messages are visible again, and maybe in other hands.
            log.warning(
                "messages dropped; their leases ran out before they were looked at",
                extra={"queue": self._pool.name, "count": len(messages)},
            )
            return
        items = [self._intake.item(message, received_at) for message in messages]
        for item in items:
            self._pool.hand.take(item)
        if self._pool.stopping.is_set():
            self._settler.release(items)
            return
        actions = [(item, self._look_into(item)) for item in items]
        fit = [item for item, action in actions if action is None]
        await self._leases.hold(fit)
        for item in fit:
            self._work.send_nowait(item)
        for item, action in actions:
            if action is not None:
                self._settler.submit(item, action)

    def _look_into(self, item: Item) -> Action | None:
        try:
            return self._intake.look_into(item)
        # The same fence as around a message's handlers: a bug of ours hurts one message at most.
        except Exception:
            facts = {"queue": self._pool.name, "message_id": item.message.message_id}
            log.exception("message not understood; this is a bug in outboxd", extra=facts)
            self._pool.observer.retried(NO_HANDLER, RetryCause.BUG)
            return HideFor(call_again("", self._pool.dice).after_seconds)

    async def _endure(self, error: Unavailable) -> None:
        self._failures += 1
        self._pool.observer.receive_failed(error.kind)
        fatal = error.kind in _FATAL
        log.log(
            logging.ERROR if fatal else logging.WARNING,
            "receive failed and is tried again",
            extra={"queue": self._pool.name, "kind": error.kind.value, "error": str(error)},
        )
        backoff = self._pool.timing.fatal_backoff if fatal else self._pool.timing.receive_backoff
        await pause(self._pool.stopping, backoff.delay(self._failures, self._pool.dice))
