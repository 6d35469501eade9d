"""Runs a message's handlers and decides what becomes of the message."""

import logging
from collections.abc import Mapping
from typing import assert_never

from anyio.streams.memory import MemoryObjectReceiveStream

from outboxd.actors.consumer.database_watch import DatabaseWatch
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.pool import NO_HANDLER, Pool
from outboxd.actors.consumer.running import Running
from outboxd.actors.consumer.settling import Action, SendLetter, Settler
from outboxd.core.envelopes import Incoming
from outboxd.core.errors import Unavailable
from outboxd.core.judging import (
    Away,
    Ending,
    Judgement,
    RetryCause,
    Returned,
    call_again,
    judge,
    spent,
)
from outboxd.core.letters import write_letter
from outboxd.core.message_plan import Bury, Delete, HandlerResult, HideFor, plan
from outboxd.core.outcomes import DeadLetter, DeadReason, Done, Retry
from outboxd.core.settings import HandlerSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.handling import HandlerRunner
from outboxd.ports.inbox import Inbox, Standing

log = logging.getLogger(__name__)

_FRESH = Standing()
_DUPLICATE = Returned(Done(duplicate=True))


class Processor:
    """Hands a message on for deletion only when every one of its handlers has ended for good."""

    def __init__(
        self,
        pool: Pool,
        runner: HandlerRunner,
        inbox: Inbox,
        leases: Leases,
        settler: Settler,
        watch: DatabaseWatch,
    ) -> None:
        self._pool = pool
        self._running = Running(pool, runner)
        self._inbox = inbox
        self._leases = leases
        self._settler = settler
        self._watch = watch

    async def work(self, items: MemoryObjectReceiveStream[Item]) -> None:
        """Process one item after another until there are no more; one of many workers."""
        async for item in items:
            await self._process(item)

    async def _process(self, item: Item) -> None:
        if self._pool.stopping.is_set():
            self._settler.release([item])
            return
        if item.lost or self._ran_out(item):
            await self._drop(item)
            return
        try:
            action = await self._decide(item)
        # The last fence around one message: a bug of ours must not take its neighbours along.
        except Exception:
            log.exception(
                "message not processed; this is a bug in outboxd", extra=self._facts(item)
            )
            self._pool.observer.retried(NO_HANDLER, RetryCause.BUG)
            action = HideFor(call_again("", self._pool.dice).after_seconds)
        self._settler.submit(item, action)

    async def _decide(self, item: Item) -> Action:
        assert item.incoming is not None
        try:
            standings = await self._standings(item, item.incoming)
        except Unavailable as error:
            return self._postpone(item, error)
        if item.message.receive_count == 1:
            self._pool.observer.waited(self._pool.wall_clock() - item.message.sent_at)
        results = [
            await self._result(item, item.incoming, handler, standings.get(handler.name, _FRESH))
            for handler in item.handlers
        ]
        return self._action(item, results)

    async def _standings(self, item: Item, incoming: Incoming) -> Mapping[str, Standing]:
        """Nothing can be known of a message's first delivery to its only handler."""
        if item.message.receive_count == 1 and len(item.handlers) == 1:
            return {}
        names = [handler.name for handler in item.handlers]
        return await self._inbox.standings(incoming.id, item.message, names)

    async def _result(
        self, item: Item, incoming: Incoming, handler: HandlerSettings, standing: Standing
    ) -> HandlerResult:
        if standing.dead is not None:
            return HandlerResult(handler.name, standing.dead, standing.attempts)
        ending: Ending = _DUPLICATE
        if not standing.done:
            ending = await self._running.run(item, incoming, handler, standing.attempts + 1)
        try:
            judgement, attempts = await self._judge(item, incoming, handler, standing, ending)
        except Unavailable as error:
            ending = Away(str(error))
            attempts = standing.attempts
            judgement = judge(ending, attempts, self._pool.patience[handler.name], self._pool.dice)
        self._tell(incoming, handler.name, ending, judgement)
        return HandlerResult(handler.name, judgement.outcome, attempts)

    async def _judge(
        self,
        item: Item,
        incoming: Incoming,
        handler: HandlerSettings,
        standing: Standing,
        ending: Ending,
    ) -> tuple[Judgement, int]:
        error = spent(ending)
        attempts = standing.attempts
        if error is not None:
            attempts = await self._inbox.failed(incoming.id, item.message, handler.name, error)
        judgement = judge(ending, attempts, self._pool.patience[handler.name], self._pool.dice)
        if isinstance(judgement.outcome, DeadLetter):
            letter = judgement.outcome
            await self._inbox.dead(incoming.id, item.message, handler.name, letter)
        return judgement, attempts

    def _action(self, item: Item, results: list[HandlerResult]) -> Action:
        decided = plan(results)
        match decided:
            case Delete() | HideFor():
                return decided
            case Bury(dead=dead):
                now = self._pool.wall_clock()
                cause = dead[0].letter
                letter = write_letter(
                    self._pool.sqs_name, item.message, item.incoming, cause, dead, now
                )
                return SendLetter(letter, cause, dead)
            case _:
                assert_never(decided)

    def _postpone(self, item: Item, error: Unavailable) -> HideFor:
        self._watch.lost(str(error))
        for handler in item.handlers:
            self._pool.observer.processed(handler.name, Processed.RETRY)
            self._pool.observer.retried(handler.name, RetryCause.DATABASE)
        return HideFor(call_again(str(error), self._pool.dice).after_seconds)

    def _tell(self, incoming: Incoming, handler: str, ending: Ending, judgement: Judgement) -> None:
        if isinstance(ending, Away):
            self._watch.lost(ending.error)
        else:
            self._watch.used()
        match judgement.outcome:
            case Done(duplicate=True):
                self._pool.observer.processed(handler, Processed.DUPLICATE)
            case Done():
                self._pool.observer.processed(handler, Processed.OK)
                occurred = incoming.occurred_at.timestamp()
                self._pool.observer.handled(handler, self._pool.wall_clock() - occurred)
            case Retry():
                self._pool.observer.processed(handler, Processed.RETRY)
                self._pool.observer.retried(handler, judgement.cause or RetryCause.ERROR)
            case DeadLetter(reason=DeadReason.INVALID_PAYLOAD):
                self._pool.observer.processed(handler, Processed.POISON)
                self._pool.observer.poison(DeadReason.INVALID_PAYLOAD)
            case DeadLetter():
                self._pool.observer.processed(handler, Processed.DEAD)
            case _:
                assert_never(judgement.outcome)

    def _ran_out(self, item: Item) -> bool:
        """Whether this process stood still since the receive; the extender may never have known."""
        lease = item.lease
        return self._pool.clock() >= lease.received_at + lease.visibility_seconds

    async def _drop(self, item: Item) -> None:
        """The message is visible again, and maybe in other hands."""
        log.warning("message dropped; its lease has run out", extra=self._facts(item))
        for handler in item.handlers:
            self._pool.observer.processed(handler.name, Processed.LOST)
        await self._leases.settled([item])
        self._pool.hand.drop([item])

    def _facts(self, item: Item) -> dict[str, object]:
        return {"queue": self._pool.name, "message_id": item.message.message_id}
