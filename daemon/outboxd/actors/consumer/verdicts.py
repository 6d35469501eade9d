"""Turns the ending of a handler's call into its result, counted in the inbox and told."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from outboxd.actors.consumer.actions import Action, SendLetter
from outboxd.actors.consumer.database_watch import DatabaseWatch
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.core.errors import Unavailable
from outboxd.core.judging import (
    Away,
    Busy,
    Ending,
    Judgement,
    RetryCause,
    call_again,
    judge,
    spent,
)
from outboxd.core.letters import write_letter
from outboxd.core.message_plan import Bury, HandlerResult, HideFor, plan
from outboxd.core.outcomes import DeadLetter, DeadReason, Done, Outcome, Retry
from outboxd.core.settings import HandlerSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.inbox import Inbox, Standing

_FRESH = Standing()

MOST_PATIENCE = 12
"""Times the usual delay: one to two minutes."""


class Verdicts:
    """The only place where attempts are counted, and where handlers are given up."""

    def __init__(self, pool: Pool, inbox: Inbox, watch: DatabaseWatch) -> None:
        self._pool = pool
        self._inbox = inbox
        self._watch = watch

    async def judge(
        self, item: Item, handler: HandlerSettings, attempts: int, ending: Ending
    ) -> HandlerResult:
        """What the ending means, after `attempts` failed attempts before it."""
        try:
            attempts = await self._count(item, handler, attempts, ending)
            judgement = self._judgement(handler, attempts, ending)
            if isinstance(judgement.outcome, DeadLetter):
                await self._give_up(item, handler, judgement.outcome)
        except Unavailable as error:
            ending = Away(str(error))
            judgement = self._judgement(handler, attempts, ending)
        self._tell(item, handler.name, ending, judgement)
        return HandlerResult(handler.name, _patient(item, ending, judgement.outcome), attempts)

    async def condemn(
        self, item: Item, standings: Mapping[str, Standing], verdict: DeadLetter
    ) -> Sequence[HandlerResult]:
        """Give up every handler that has not ended yet, without calling it. Raises Unavailable."""
        results: list[HandlerResult] = []
        for handler in item.handlers:
            standing = standings.get(handler.name, _FRESH)
            if standing.done:
                results.append(HandlerResult(handler.name, Done(duplicate=True)))
            elif standing.dead is not None:
                results.append(HandlerResult(handler.name, standing.dead, standing.attempts))
            else:
                attempts = await self._failed(item, handler, verdict.error)
                await self._give_up(item, handler, verdict)
                self._pool.observer.processed(handler.name, Processed.DEAD)
                results.append(HandlerResult(handler.name, verdict, attempts))
        return results

    async def note_batch_timeout(self, item: Item, handler: HandlerSettings) -> float:
        """Note that a batch with this message was over its time, which is nobody's attempt but has
        it run alone from now on; seconds until the next try."""
        assert item.incoming is not None
        self._pool.observer.processed(handler.name, Processed.RETRY)
        self._pool.observer.retried(handler.name, RetryCause.TIMEOUT)
        error = f"its batch timed out after {handler.timeout_seconds:g} s"
        try:
            await self._inbox.noted(item.incoming.id, item.message, handler.name, error)
        except Unavailable as unavailable:
            return call_again(str(unavailable), self._pool.dice).after_seconds
        return self._pool.patience[handler.name].backoff.delay(1, self._pool.dice)

    def postpone(self, item: Item, error: Unavailable) -> HideFor:
        """The database is away, so that nothing can be known of the message."""
        self._watch.lost(str(error))
        for handler in item.handlers:
            self._pool.observer.processed(handler.name, Processed.RETRY)
            self._pool.observer.retried(handler.name, RetryCause.DATABASE)
        return HideFor(call_again(str(error), self._pool.dice).after_seconds)

    def action(self, item: Item, results: Sequence[HandlerResult]) -> Action:
        """What is to be done with a message whose handlers have come so far."""
        decided = plan(results)
        if not isinstance(decided, Bury):
            return decided
        cause = decided.dead[0].letter
        name, now = self._pool.sqs_name, self._pool.wall_clock()
        letter = write_letter(name, item.message, item.incoming, cause, decided.dead, now)
        return SendLetter(letter, cause, decided.dead)

    async def _count(
        self, item: Item, handler: HandlerSettings, attempts: int, ending: Ending
    ) -> int:
        error = spent(ending)
        return attempts if error is None else await self._failed(item, handler, error)

    async def _failed(self, item: Item, handler: HandlerSettings, error: str) -> int:
        assert item.incoming is not None
        return await self._inbox.failed(item.incoming.id, item.message, handler.name, error)

    async def _give_up(self, item: Item, handler: HandlerSettings, letter: DeadLetter) -> None:
        assert item.incoming is not None
        await self._inbox.dead(item.incoming.id, item.message, handler.name, letter)

    def _judgement(self, handler: HandlerSettings, attempts: int, ending: Ending) -> Judgement:
        return judge(ending, attempts, self._pool.patience[handler.name], self._pool.dice)

    def _tell(self, item: Item, handler: str, ending: Ending, judgement: Judgement) -> None:
        if isinstance(ending, Away):
            self._watch.lost(ending.error)
        else:
            self._watch.used()
        match judgement.outcome:
            case Done(duplicate=True):
                self._pool.observer.processed(handler, Processed.DUPLICATE)
            case Done():
                self._took_effect(item, handler)
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

    def _took_effect(self, item: Item, handler: str) -> None:
        assert item.incoming is not None
        self._pool.observer.processed(handler, Processed.OK)
        occurred = item.incoming.occurred_at.timestamp()
        self._pool.observer.handled(handler, self._pool.wall_clock() - occurred)


def _patient(item: Item, ending: Ending, outcome: Outcome) -> Outcome:
    """What is in other hands may be so for hours, and each look is a receive, of which the queue's
    own redrive policy allows a hundred: look less and less often, but not so at first, when the
    other hands are most likely those of a process that has just been killed."""
    if isinstance(ending, Busy) and isinstance(outcome, Retry):
        times = min(1 + item.message.receive_count // 5, MOST_PATIENCE)
        return Retry(outcome.after_seconds * times, outcome.error)
    return outcome
