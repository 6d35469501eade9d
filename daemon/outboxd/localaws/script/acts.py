"""What each fault does to a call that it has taken hold of."""

import asyncio
from typing import assert_never

from outboxd.localaws.exchange import Hangup, Outcome
from outboxd.localaws.faults import Proceed, Target
from outboxd.localaws.http1 import Request
from outboxd.localaws.script import batches, single
from outboxd.localaws.script.choosing import Batch
from outboxd.localaws.script.kinds import (
    RECEIVE,
    AccessDenied,
    Duplicate,
    Error,
    ExpiredToken,
    FailEntries,
    Hang,
    Reorder,
    Reset,
    ServerError,
    Slow,
    StaleReceipt,
    Swallow,
    Throttle,
    When,
)
from outboxd.localaws.script.refusals import refusal
from outboxd.localaws.script.rule import Rule


class Act:
    """One fault in its hold of one call; `batch` is the part that it is about, if it is a batch."""

    def __init__(self, rule: Rule, target: Target, batch: Batch | None) -> None:
        self._rule = rule
        self._target = target
        self._batch = batch

    async def __call__(self, request: Request, proceed: Proceed) -> Outcome:
        """The outcome for the client. Raises AwsError."""
        kind = self._rule.kind
        match kind:
            case Swallow() | StaleReceipt() | FailEntries() if self._batch is not None:
                return await batches.split(kind, self._target, self._batch, request, proceed)
            case Swallow():
                return single.swallowed(self._target, request)
            case StaleReceipt():
                return single.stale(kind, request)
            case Throttle() | Error() | ExpiredToken() | AccessDenied():
                raise refusal(kind, self._target)
            case ServerError(when=when):
                await _done_first(when, proceed)
                raise refusal(kind, self._target)
            case Reset(when=when):
                await _done_first(when, proceed)
                return Hangup()
            case Hang(when=when):
                await _done_first(when, proceed)
                await self._rule.hold()
                return Hangup()
            case Slow(seconds=seconds, when=when):
                return await self._slowly(seconds, when, proceed)
            case FailEntries() | Duplicate() | Reorder():
                # These are never given a call that is not theirs.
                return await proceed()
            case _:
                assert_never(kind)

    async def _slowly(self, seconds: float, when: When, proceed: Proceed) -> Outcome:
        match when:
            case "before":
                return await self._late(seconds, proceed)
            case "after":
                outcome = await proceed()
                await self._rule.hold(seconds)
                return outcome
            case _:
                assert_never(when)

    async def _late(self, seconds: float, proceed: Proceed) -> Outcome:
        async def wait_and_proceed() -> Outcome:
            await self._rule.hold(seconds)
            return await proceed()

        if self._target.operation in RECEIVE:
            # A client that leaves a poll takes no messages along, slow or not.
            return await wait_and_proceed()
        # AWS does not notice that a client has given up: it does the work all the same, later than
        # whatever the client has tried instead.
        work = asyncio.ensure_future(wait_and_proceed())
        self._rule.late.add(work)
        work.add_done_callback(self._rule.late.discard)
        return await asyncio.shield(work)


async def _done_first(when: When, proceed: Proceed) -> None:
    match when:
        case "before":
            return
        case "after":
            await proceed()
        case _:
            assert_never(when)
