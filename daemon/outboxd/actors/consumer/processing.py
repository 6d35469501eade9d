"""Runs a message's handlers and decides what becomes of the message."""

import logging
from collections.abc import Mapping, Sequence

from outboxd.actors.consumer.actions import Action
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.pool import NO_HANDLER, Pool
from outboxd.actors.consumer.running import Running
from outboxd.actors.consumer.settling import Settler
from outboxd.actors.consumer.suspecting import Suspecting
from outboxd.actors.consumer.verdicts import Verdicts
from outboxd.core.errors import Unavailable
from outboxd.core.judging import Ending, RetryCause, Returned, call_again, crash_verdict
from outboxd.core.message_plan import HandlerResult, HideFor
from outboxd.core.outcomes import DeadLetter, Done
from outboxd.core.settings import HandlerSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.inbox import Inbox, Standing
from outboxd.ports.suspects import Suspicion

log = logging.getLogger(__name__)

_FRESH = Standing()
_DUPLICATE = Returned(Done(duplicate=True))


class Processor:
    """Says that a message may be deleted only when every one of its handlers has ended for good."""

    def __init__(
        self,
        pool: Pool,
        running: Running,
        inbox: Inbox,
        leases: Leases,
        settler: Settler,
        suspecting: Suspecting,
        verdicts: Verdicts,
    ) -> None:
        self._pool = pool
        self._running = running
        self._inbox = inbox
        self._leases = leases
        self._settler = settler
        self._suspecting = suspecting
        self._verdicts = verdicts

    async def run(self, item: Item) -> Action | None:
        """Run the item's handlers, if it has any, and return what is to be done with its message;
        None if it is in hand no longer, released by a stop, or lost."""
        if self._pool.stopping.is_set():
            self._settler.release([item])
            return None
        if item.lost or self._ran_out(item):
            await self._drop(item)
            return None
        return item.verdict or await self._fenced(item)

    async def _fenced(self, item: Item) -> Action:
        try:
            return await self._decide(item)
        # The last fence around one message: a bug of ours must not take its neighbours along.
        except Exception:
            log.exception("message not processed; this is a bug in outboxd", extra=item.facts())
            self._pool.observer.retried(NO_HANDLER, RetryCause.BUG)
            return HideFor(call_again("", self._pool.dice).after_seconds)

    async def _decide(self, item: Item) -> Action:
        try:
            standings = await self._standings(item)
            verdict = _verdict(item.suspicion)
            if verdict is not None:
                results = await self._verdicts.condemn(item, standings, verdict)
                return self._verdicts.action(item, results)
        except Unavailable as error:
            return self._verdicts.postpone(item, error)
        if item.message.receive_count == 1:
            self._pool.observer.waited(self._pool.wall_clock() - item.message.sent_at)
        return self._verdicts.action(item, await self._results(item, standings))

    async def _results(
        self, item: Item, standings: Mapping[str, Standing]
    ) -> Sequence[HandlerResult]:
        if item.alone:
            log.info("runs alone", extra=item.facts())
            await self._leases.alone(item)
        results = [
            await self._result(item, handler, standings.get(handler.name, _FRESH))
            for handler in item.handlers
        ]
        if item.suspicion is not None:
            await self._suspecting.clear(item)
        return results

    async def _standings(self, item: Item) -> Mapping[str, Standing]:
        """Nothing can be known of a message's first delivery to its only handler."""
        assert item.incoming is not None
        if item.message.receive_count == 1 and len(item.handlers) == 1:
            return {}
        names = [handler.name for handler in item.handlers]
        return await self._inbox.standings(item.incoming.id, item.message, names)

    async def _result(
        self, item: Item, handler: HandlerSettings, standing: Standing
    ) -> HandlerResult:
        if standing.dead is not None:
            return HandlerResult(handler.name, standing.dead, standing.attempts)
        ending: Ending = _DUPLICATE
        if not standing.done:
            ending = await self._running.run(item, handler, standing.attempts + 1)
        return await self._verdicts.judge(item, handler, standing.attempts, ending)

    def _ran_out(self, item: Item) -> bool:
        """Whether the lease is over, since this process stood still for so long.

        The extender keeps a lease while its message waits for its turn, but not beyond this.
        """
        lease = item.lease
        until = lease.permitted_until if item.held else lease.received_at + lease.visibility_seconds
        return self._pool.clock() >= until

    async def _drop(self, item: Item) -> None:
        """The message is visible again, and maybe in other hands."""
        log.warning("message dropped; its lease has run out", extra=item.facts())
        for handler in item.handlers:
            self._pool.observer.processed(handler.name, Processed.LOST)
        self._leases.settled([item])
        self._pool.hand.drop([item])


def _verdict(suspicion: Suspicion | None) -> DeadLetter | None:
    return None if suspicion is None else crash_verdict(suspicion.crashes_alone, suspicion.reason)
