"""The end of a process in which a handler is over its time and cannot be interrupted.

A thread ends when it returns, or with its process. So the pool takes no more work, lets the
neighbours finish, counts the attempt, and ends; the transaction of the handler dies with it.
"""

import logging
from collections.abc import Callable

import anyio

from outboxd.actors.consumer.actions import Action
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.running import Running, Started
from outboxd.actors.consumer.settling import Settler
from outboxd.actors.consumer.verdicts import Verdicts
from outboxd.core.judging import TimedOut
from outboxd.core.message_plan import HandlerResult, HideFor
from outboxd.core.outcomes import DeadLetter
from outboxd.ports.inbox import Inbox

log = logging.getLogger(__name__)


class Retirement:
    """Says when it is time, and what becomes of the messages whose handlers hang."""

    def __init__(
        self, pool: Pool, running: Running, inbox: Inbox, settler: Settler, verdicts: Verdicts
    ) -> None:
        self._pool = pool
        self._running = running
        self._inbox = inbox
        self._settler = settler
        self._verdicts = verdicts
        self._hung: list[Started] = []
        self.because_of: frozenset[str] = frozenset()
        """The names of the handlers that this process has to end for."""

    async def watch(self, take_no_more: Callable[[], None], asking: Callable[[], bool]) -> None:
        """Return once nothing but overdue threads is left in hand, which may be never.

        Nor before the receive that is on its way has ended, of which `asking` knows: thrown away it
        would hide what it brings for a whole visibility timeout, what was just released above all.
        """
        while not (overdue := self._running.overdue()):
            await self._look_later()
        for started in overdue:
            log.error(
                "handler is over its time and cannot be interrupted; its process is replaced",
                extra=self._facts(started),
            )
        self.because_of = frozenset(started.handler.name for started in overdue)
        take_no_more()
        while asking() or self._others_left():
            await self._look_later()
        self._hung = self._running.overdue()

    async def conclude(self) -> int:
        """Count the attempt of each handler that hangs, and see to its message; how many hang."""
        for started in self._hung:
            if len(started.items) == 1:
                await self._conclude(started)
            else:
                await self._break_up(started)
        return len(self._hung)

    async def _look_later(self) -> None:
        await anyio.sleep(self._pool.timing.overdue_look_seconds)

    def _others_left(self) -> bool:
        overdue = sum(len(started.items) for started in self._running.overdue())
        return self._pool.hand.active > overdue

    async def _conclude(self, started: Started) -> None:
        (item,) = started.items
        ending = TimedOut(started.handler.timeout_seconds)
        result = await self._verdicts.judge(item, started.handler, started.attempt - 1, ending)
        self._settler.submit(item, self._action(item, result))

    def _action(self, item: Item, result: HandlerResult) -> Action:
        if isinstance(result.outcome, DeadLetter) and self._inbox.remembers:
            # The letter is left to a delivery after the end of this process: until then its thread
            # may still commit, and what has taken effect must not be called dead.
            facts = {**item.facts(), "handler": result.handler, "error": result.outcome.error}
            log.warning("handler given up", extra=facts)
            return HideFor(self._pool.timing.retire_seconds)
        if isinstance(result.outcome, DeadLetter) and len(item.handlers) > 1:
            # Others of its handlers have not been called, and a letter would end them too.
            return HideFor(self._pool.patience[result.handler].backoff.cap_seconds)
        return self._verdicts.action(item, [result])

    async def _break_up(self, started: Started) -> None:
        """A batch is nobody's fault yet; what has failed before runs alone the next time."""
        for item in started.items:
            seconds = await self._verdicts.note_batch_timeout(item, started.handler)
            self._settler.submit(item, HideFor(seconds))

    def _facts(self, started: Started) -> dict[str, object]:
        return {
            "queue": self._pool.name,
            "handler": started.handler.name,
            "message_ids": [item.message.message_id for item in started.items],
            "timeout_seconds": started.handler.timeout_seconds,
        }
