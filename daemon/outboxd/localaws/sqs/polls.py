"""Long polls: receives that wait for their queue to have something."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from outboxd.localaws.alarm import Alarm
from outboxd.localaws.clock import Clock
from outboxd.localaws.deadlines import Deadlines
from outboxd.localaws.exchange import Client, Pending
from outboxd.localaws.http1 import Answer
from outboxd.localaws.sqs.call import Waiting
from outboxd.localaws.sqs.queue import Queue

# An answer, or None while there is nothing to answer yet.
Attempt = Callable[[float], Answer | None]


class _Poll(NamedTuple):
    client: Client
    attempt: Attempt
    otherwise: Answer
    pending: Pending


class QueuePolls:
    """The receivers waiting for one queue, served in the order in which they came.

    The queue tells of its changes while it is in the middle of them, so nothing is served on the
    spot but in the next turn of the event loop; what happens by itself (the end of a lease, a
    delay, a wait) sets the alarm. A queue with a dead-letter queue is attended to without any
    receivers too, for what ends here is seen there.
    """

    def __init__(self, queue: Queue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._polls: OrderedDict[int, _Poll] = OrderedDict()
        self._ends: Deadlines[int] = Deadlines()
        self._last_number = 0
        self._reviewing: asyncio.Handle | None = None
        self._alarm = Alarm(clock, self._review)
        queue.on_change = self._changed

    def __len__(self) -> int:
        return len(self._polls)

    def add(self, waiting: Waiting, attempt: Attempt, otherwise: Answer, client: Client) -> Pending:
        """Wait; the pending answer is abandoned by the connection when its client hangs up."""
        self._last_number += 1
        number = self._last_number
        pending = Pending(lambda: self._forget(number))
        self._polls[number] = _Poll(client, attempt, otherwise, pending)
        self._ends.set(number, waiting.until)
        self._set_alarm()
        return pending

    def close(self) -> None:
        if self._reviewing is not None:
            self._reviewing.cancel()
            self._reviewing = None
        self._alarm.close()

    def _changed(self) -> None:
        if self._polls:
            if self._reviewing is None:
                self._reviewing = asyncio.get_running_loop().call_soon(self._review)
        elif self._queue.settings.redrive is not None:
            # Too early is good enough: leases end later and later, and setting the alarm for each
            # new first one would cost more than an idle look now and then.
            self._alarm.set_by(self._queue.next_change_at())

    def _review(self) -> None:
        if self._reviewing is not None:
            # Taken down first, so that a change made by what follows orders another review.
            self._reviewing.cancel()
            self._reviewing = None
        now = self._clock.now()
        self._queue.catch_up(now)
        self._serve(now)
        for number in self._ends.due(now):
            poll = self._polls.pop(number)
            poll.pending.finish(poll.otherwise)
        self._set_alarm()

    def _serve(self, now: float) -> None:
        while self._polls and (self._queue.deliverable or self._queue.deleted):
            number, poll = next(iter(self._polls.items()))
            if poll.client.gone():
                # The connection will be reported lost in a moment.
                self._forget(number)
                continue
            answer = poll.attempt(now)
            if answer is None:
                return
            self._forget(number)
            poll.pending.finish(answer)

    def _set_alarm(self) -> None:
        attended = self._polls or self._queue.settings.redrive is not None
        self._alarm.set(self._queue.next_change_at() if attended else None)
        self._alarm.set_by(self._ends.earliest())

    def _forget(self, number: int) -> None:
        self._polls.pop(number, None)
        self._ends.cancel(number)
