"""Keeps the leases of all consumers alive, and gives those of dead consumers back."""

import logging
import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, assert_never

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from outboxd.actors.forgetting import Forgetting
from outboxd.actors.visibility_calls import VisibilityCalls
from outboxd.channels.mailbox import Mailbox
from outboxd.channels.protocol import (
    Address,
    Alone,
    Bye,
    Drain,
    ExtenderDown,
    ExtenderUp,
    Forget,
    Forgotten,
    Heartbeat,
    Hold,
    LeaseLost,
    Message,
    MetricsSnapshot,
    OwnerGone,
    Pause,
    Ready,
    Resume,
    Settled,
    SuspectsRecorded,
    Welcome,
)
from outboxd.core import lease_changes
from outboxd.core.clock import boottime
from outboxd.core.leases import LeaseTable
from outboxd.core.retry import Backoff, Dice
from outboxd.pacing import pause
from outboxd.ports.extender_observer import ExtenderObserver
from outboxd.ports.progress import Progress
from outboxd.ports.visibility import (
    BATCH,
    Extended,
    Failed,
    Lost,
    Timeout,
    TimeoutResult,
    Visibility,
)

log = logging.getLogger(__name__)

Change: TypeAlias = lease_changes.Change[Address]
Notice: TypeAlias = lease_changes.Notice[Address]

ORPHAN_SECONDS = 3.0
"""How long an extender without a supervisor goes on; its process ends 5 s after the hang-up."""

DELETED_SECONDS = 0.5
"""How long the word of a delete may take to come here, after SQS has heard of it."""


class ExtenderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`calls_per_queue` bounds what a queue that hangs can take from the others: nothing but its
    own share of threads."""

    calls_per_queue: int = 2
    retry: Backoff = Backoff(first_seconds=0.2, cap_seconds=5.0, jitter=0.5)


class Extender:
    """Extends every held lease before it ends, for as long as its handlers may run, and makes a
    dead owner's messages visible again at once.

    A deadline moves only when SQS confirmed it, counted from before the call. A failed call is
    tried again while there is time left on the lease; nothing else ends the extending.
    """

    def __init__(
        self,
        visibility: Visibility,
        settings: ExtenderSettings,
        observer: ExtenderObserver,
        progress: Progress,
        mailbox: Mailbox,
        *,
        clock: Callable[[], float] = boottime,
        dice: Dice = random.random,
    ) -> None:
        self._calls = VisibilityCalls(visibility, settings.calls_per_queue, progress, clock)
        self._retry = settings.retry
        self._observer = observer
        self._mailbox = mailbox
        self._clock = clock
        self._dice = dice
        self._table: LeaseTable[Address] = LeaseTable()
        self._forgetting = Forgetting()
        self._drain_by: float | None = None
        self._news = anyio.Event()
        self._words: MemoryObjectSendStream[Message]

    async def run(self) -> None:
        """Keep the leases until a drain, or the end of the mailbox, then finish giving back."""
        await self._mailbox.send(Ready())
        # Unbounded, so that a supervisor which does not listen cannot stop the extending.
        self._words, unsaid = anyio.create_memory_object_stream[Message](math.inf)
        async with anyio.create_task_group() as telling:
            telling.start_soon(self._tell, unsaid)
            with self._words:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._listen)
                    await self._keep_leases(tasks)
                    tasks.cancel_scope.cancel()

    async def _tell(self, unsaid: MemoryObjectReceiveStream[Message]) -> None:
        async with unsaid:
            async for message in unsaid:
                await self._mailbox.send(message)

    async def _listen(self) -> None:
        async for message in self._mailbox:
            self._take(message)
            self._news.set()
        self._finish_by(self._clock() + ORPHAN_SECONDS)

    def _take(self, message: Message) -> None:
        match message:
            case Hold(owner=owner, leases=leases):
                now = self._clock()
                self._pass_on(
                    notice for lease in leases for notice in self._table.hold(owner, lease, now)
                )
            case Forget(owner=owner, tokens=tokens):
                in_flight = self._table.forget(owner, tokens)
                self._say(self._forgetting.ask(message, in_flight))
            case Settled(owner=owner, tokens=tokens):
                self._table.settled(owner, tokens)
            case OwnerGone(owner=owner, why=why):
                log.info("owner is gone", extra={"owner": str(owner), "why": why})
                self._pass_on(self._table.gone(owner))
            case Drain(deadline=deadline):
                self._finish_by(deadline)
            case (
                Welcome()
                | Ready()
                | SuspectsRecorded()
                | Heartbeat()
                | MetricsSnapshot()
                | Bye()
                | Alone()
                | Forgotten()
                | LeaseLost()
                | ExtenderUp()
                | ExtenderDown()
                | Pause()
                | Resume()
            ):
                return  # not for an extender
            case _:
                assert_never(message)

    def _finish_by(self, deadline: float) -> None:
        self._drain_by = deadline if self._drain_by is None else min(self._drain_by, deadline)
        self._news.set()

    @property
    def _finished(self) -> bool:
        if self._drain_by is None:
            return False
        return self._table.idle or self._clock() >= self._drain_by

    async def _keep_leases(self, tasks: TaskGroup) -> None:
        while not self._finished:
            self._news = anyio.Event()
            for queue in self._table.queues:
                self._start_calls(queue, tasks)
                self._observer.tracking(queue, self._table.tracked(queue))
            await self._rest()

    def _start_calls(self, queue: str, tasks: TaskGroup) -> None:
        while self._calls.has_room(queue):
            due = self._table.due(queue, self._clock(), BATCH)
            self._pass_on(due.notices)
            if not due.changes:
                return
            self._calls.reserve(queue)
            tasks.start_soon(self._call, queue, due.changes)

    async def _rest(self) -> None:
        """Sleep until something is due, or until there are news."""
        moments = [
            self._table.next_due(queue)
            for queue in self._table.queues
            if self._calls.has_room(queue)
        ]
        next_due = min((at for at in (*moments, self._drain_by) if at is not None), default=None)
        if next_due is None:
            await self._news.wait()
        else:
            await pause(self._news, max(0.0, next_due - self._clock()))

    async def _call(self, queue: str, changes: Sequence[Change]) -> None:
        # Before the call: SQS counts from its own receipt of it, which is later.
        started = self._clock()
        timeouts = [Timeout(change.receipt_handle, change.seconds) for change in changes]
        results = await self._calls.make(queue, timeouts)
        refusals = self._took(queue, changes, results, started)
        self._news.set()
        if refusals:
            await anyio.sleep(DELETED_SECONDS)
            self._believe(queue, refusals)

    def _took(
        self,
        queue: str,
        changes: Sequence[Change],
        results: Sequence[TimeoutResult],
        started: float,
    ) -> Sequence[Notice]:
        """Take note of the answers; returns what the refusals mean if they are to be believed."""
        failed: list[Change] = []
        notices: list[Notice] = []
        refusals: list[Notice] = []
        for change, result in zip(changes, results, strict=True):
            self._count(queue, change, result)
            match result:
                case Extended():
                    notices += self._table.confirmed(change, started + change.seconds)
                case Lost() if change.gives_back:
                    notices += self._table.refused(change)
                case Lost():
                    refusals += self._table.refused(change)
                case Failed():
                    failed.append(change)
                case _:
                    assert_never(result)
        self._try_again(failed)
        self._pass_on(notices)
        self._say(self._forgetting.landed({(change.owner, change.token) for change in changes}))
        return refusals

    def _believe(self, queue: str, refusals: Iterable[Notice]) -> None:
        """A receipt is refused also when its message was deleted a moment ago, as its owner will
        have said by now; then nothing is lost."""
        for notice in refusals:
            if isinstance(notice, lease_changes.Lost) and not self._table.knows(
                notice.owner, notice.token
            ):
                continue
            self._observer.extension_refused(queue)
            self._pass_on([notice])

    def _try_again(self, failed: Sequence[Change]) -> None:
        if not failed:
            return
        # One delay for the batch: with one for each, a batch would come back as ten calls.
        delay = self._retry.delay(max(each.attempt for each in failed), self._dice)
        now = self._clock()
        for change in failed:
            self._table.failed(change, now, now + delay)

    def _count(self, queue: str, change: Change, result: TimeoutResult) -> None:
        match result:
            case Extended() if change.gives_back:
                self._observer.given_back(queue)
            case Extended():
                self._observer.extended(queue, change.slack)
            case Lost():
                return  # somebody else has it, as it should be, or it is told when it is believed
            case Failed() if change.gives_back:
                self._observer.giving_back_failed(queue)
            case Failed():
                self._observer.extension_failed(queue)
            case _:
                assert_never(result)

    def _pass_on(self, notices: Iterable[Notice]) -> None:
        lost: dict[Address, list[int]] = {}
        over: dict[Address, list[int]] = {}
        for notice in notices:
            match notice:
                case lease_changes.Lost(owner, token, queue, message_id):
                    lost.setdefault(owner, []).append(token)
                    self._observer.lease_lost(queue)
                    log.warning(
                        "lease lost",
                        extra={"queue": queue, "message_id": message_id, "owner": str(owner)},
                    )
                case lease_changes.NothingLeft(owner, token):
                    over.setdefault(owner, []).append(token)
                case lease_changes.Limited(queue):
                    self._observer.limit_reached(queue)
                case _:
                    assert_never(notice)
        self._say([LeaseLost(owner, tuple(tokens)) for owner, tokens in lost.items()])
        # The supervisor's ledger keeps a dead owner's lease until it hears that it is over.
        self._say([Settled(owner, tuple(tokens)) for owner, tokens in over.items()])

    def _say(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._words.send_nowait(message)
