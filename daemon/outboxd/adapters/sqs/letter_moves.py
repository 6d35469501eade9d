"""Sends letters back to their queue and deletes them, batch by batch, and notes what failed."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from outboxd.adapters.sqs.letter_reports import Report, failure, without_body
from outboxd.adapters.sqs.letter_scan import LetterScan
from outboxd.core.clock import boottime
from outboxd.core.errors import Unavailable
from outboxd.core.rate import Rate
from outboxd.core.redrive import Comebacks, Entry, in_turns, redriven
from outboxd.ports.queue import Queue, Refusal

DELETE_TRIES = 3

BEHIND_ANOTHER = "an earlier letter of its message group could not be sent"


class Pace:
    """At most so many letters a second; None is as fast as it goes.

    At least one, or letters that wait for their turn would be visible again before it comes.
    """

    def __init__(
        self,
        per_second: int | None,
        clock: Callable[[], float] = boottime,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._rate = None if per_second is None else Rate(per_second, clock())

    async def turn(self, most: int) -> int:
        """How many may be sent now, one at least; waits for it."""
        if self._rate is None:
            return most
        await self._sleep(self._rate.seconds_until_one(self._clock()))
        now = self._clock()
        number = min(most, max(1, self._rate.available(now)))
        self._rate.take(number, now)
        return number


class LetterMoves:
    """Deletes a letter only when its send, if it was to be sent, is confirmed."""

    def __init__(self, queue: Queue, target: str, pace: Pace, report: Report) -> None:
        self._queue = queue
        self._target = target
        self._pace = pace
        self._report = report

    async def turn(self, most: int, stopping: Callable[[], bool]) -> int:
        """How many letters may be sent now; none if it is time to stop."""
        number = await self._pace.turn(most)
        return 0 if stopping() else number

    async def send(self, batch: Sequence[Entry], scan: LetterScan, comebacks: Comebacks) -> None:
        """Send them back in the order that their groups demand, and delete them."""
        turns = in_turns(batch, self._target)
        for number, turn in enumerate(turns):
            left = [entry for entry in turn if scan.has_left(entry)]
            self._report.failed += [failure(entry, BEHIND_ANOTHER) for entry in left]
            try:
                await self._send([e for e in turn if e not in left], scan, comebacks)
            except Unavailable as error:
                waiting = [entry for later in turns[number + 1 :] for entry in later]
                self._report.failed += [failure(entry, str(error)) for entry in waiting]
                raise

    async def delete(self, batch: Sequence[Entry], scan: LetterScan, *, sent: bool = False) -> None:
        """Delete them; `sent` if they are in their queue by now.

        Raises Unavailable if that failed as a whole, after all tries: to go on would send one
        letter after the other that stays a letter too.
        """
        kept, outage = await self._undeleted(batch)
        self._report.failed += [failure(batch[i], why, sent=sent) for i, why in kept.items()]
        for index, entry in enumerate(batch):
            if index not in kept:
                self._report.done.append(without_body(entry))
                scan.forget(entry)
        if outage is not None:
            raise outage

    async def _send(self, batch: Sequence[Entry], scan: LetterScan, comebacks: Comebacks) -> None:
        letters = [redriven(entry.message, self._target) for entry in batch]
        for letter in letters:
            comebacks.note(letter)
        try:
            refusals = await self._queue.bury(letters)
        except Unavailable as error:
            self._report.failed += [failure(entry, str(error)) for entry in batch]
            raise
        refused = {refusal.index: refusal for refusal in refusals}
        for index, refusal in refused.items():
            self._report.failed.append(failure(batch[index], _words(refusal)))
            scan.leave(batch[index])
        sent = [entry for index, entry in enumerate(batch) if index not in refused]
        await self.delete(sent, scan, sent=True)

    async def _undeleted(
        self, entries: Sequence[Entry]
    ) -> tuple[dict[int, str], Unavailable | None]:
        """Delete, again where that failed, which does no harm; what is left, and why. With it the
        error of the last call, if as a whole it failed."""
        left = dict.fromkeys(range(len(entries)), "")
        outage: Unavailable | None = None
        for attempt in range(DELETE_TRIES):
            if not left:
                break
            await anyio.sleep(0.2 * attempt)
            asked = list(left)
            try:
                refusals = await self._queue.delete(
                    [entries[index].message.receipt_handle for index in asked]
                )
            except Unavailable as error:
                left, outage = dict.fromkeys(asked, str(error)), error
            else:
                outage = None
                left = {asked[refusal.index]: _words(refusal) for refusal in refusals}
        return left, outage


def _words(refusal: Refusal) -> str:
    return f"{refusal.code}: {refusal.message}" if refusal.message else refusal.code
