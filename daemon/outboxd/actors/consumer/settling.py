"""Carries out what was decided about messages, in batches, until the queue has confirmed it."""

import logging
import math
from collections.abc import Awaitable, Iterable, Sequence
from typing import assert_never

import anyio
from anyio.abc import TaskStatus

from outboxd.actors.consumer.actions import Action, SendLetter
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.pool import NO_HANDLER, Pool
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.log_facts import Payload
from outboxd.core.message_plan import Delete, HideFor, visibility
from outboxd.ports.queue import BATCH, Hiding, Queue, Refusal

log = logging.getLogger(__name__)

LETTER_TRIES = 3
"""Then the message is hidden and comes back: it must not hold its place against its neighbours."""

DELETABLE_SECONDS = 43_200.0
"""No receipt is good for longer than the twelve hours for which SQS hides a message."""


class Settlement:
    """What is to be done about one message, after `tries` tries; `finished` is for who waits."""

    __slots__ = ("action", "finished", "item", "tries")

    def __init__(self, item: Item, action: Action) -> None:
        self.item = item
        self.action = action
        self.tries = 0
        self.finished: anyio.Event | None = None


class Settler:
    """Deletes a message only when it was told to, and its letter, if any, only once accepted."""

    def __init__(
        self,
        pool: Pool,
        queue: Queue,
        leases: Leases,
    ) -> None:
        self._pool = pool
        self._queue = queue
        self._leases = leases
        self._outgoing, self._incoming = anyio.create_memory_object_stream[Settlement](math.inf)
        self._waiting = anyio.create_task_group()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Settle what is submitted, for ever."""
        async with self._waiting, self._incoming, self._outgoing:
            task_status.started()
            async for first in self._incoming:
                await self._settle(await self._gather(first))

    def submit(self, item: Item, action: Action) -> None:
        """Free the message's slot, and see to it that the action is carried out."""
        self._pool.hand.settle(item)
        self._enqueue([Settlement(item, action)])

    async def settle(self, item: Item, action: Action) -> Action:
        """The same, and wait for it. Returns what was done in the end: a message whose letter could
        not be sent was hidden instead, and one that is buried was deleted."""
        self._pool.hand.settle(item)
        settlement = Settlement(item, action)
        settlement.finished = anyio.Event()
        self._enqueue([settlement])
        await settlement.finished.wait()
        return settlement.action

    def release(self, items: Sequence[Item]) -> None:
        """Make messages visible again at once."""
        for item in items:
            self._pool.hand.settle(item)
        self._enqueue([Settlement(item, HideFor(0)) for item in items])

    def _enqueue(self, settlements: Sequence[Settlement]) -> None:
        """Settle these, those that an extension could spoil once none is on its way."""
        unsafe: list[Settlement] = []
        for settlement in settlements:
            if isinstance(settlement.action, HideFor) and settlement.item.held:
                unsafe.append(settlement)
            else:
                self._outgoing.send_nowait(settlement)
        if unsafe:
            self._waiting.start_soon(self._forget_first, unsafe)

    async def _forget_first(self, settlements: Sequence[Settlement]) -> None:
        await self._leases.forget([s.item for s in settlements])
        for settlement in settlements:
            self._outgoing.send_nowait(settlement)

    async def _gather(self, first: Settlement) -> list[Settlement]:
        batch = [first]
        self._take_waiting(batch)
        if len(batch) < BATCH and self._pool.hand.active:
            await anyio.sleep(self._pool.timing.linger_seconds)
            self._take_waiting(batch)
        return batch

    def _take_waiting(self, batch: list[Settlement]) -> None:
        while len(batch) < 3 * BATCH:
            try:
                batch.append(self._incoming.receive_nowait())
            except anyio.WouldBlock:
                return

    async def _settle(self, batch: Sequence[Settlement]) -> None:
        letters, deletes, hides = _sorted(batch)
        # Somebody else's messages now: neither burying nor hiding them is for us to do. What their
        # handlers have done is marked, so that a delete can only be right.
        await self._finish([s for s in [*letters, *hides] if s.item.lost])
        for chunk in _chunks([s for s in letters if not s.item.lost]):
            deletes += await self._send_letters(chunk)
        for chunk in _chunks(deletes):
            await self._delete(chunk)
        for chunk in _chunks([s for s in hides if not s.item.lost]):
            await self._hide(chunk)

    async def _send_letters(self, chunk: list[Settlement]) -> list[Settlement]:
        """Those whose letter was accepted, as deletes."""
        letters = [s.action.letter for s in chunk if isinstance(s.action, SendLetter)]
        confirmed, refused = await self._call(chunk, self._queue.bury(letters), "letter")
        for settlement, refusal in refused:
            settlement.tries += 1
            if refusal.permanent or settlement.tries >= LETTER_TRIES:
                self._keep(settlement, refusal)
            else:
                self._waiting.start_soon(self._again, settlement)
        for settlement in confirmed:
            self._tell_buried(settlement)
            settlement.action = Delete()  # tried again, it must not send a second letter
            settlement.tries = 0
        return confirmed

    async def _delete(self, chunk: list[Settlement]) -> None:
        handles = [s.item.message.receipt_handle for s in chunk]
        confirmed, refused = await self._call(chunk, self._queue.delete(handles), "delete")
        finished = confirmed
        for settlement, refusal in refused:
            self._pool.observer.delete_failed(_failure(refusal))
            age = self._pool.clock() - settlement.item.lease.received_at
            if refusal.permanent or age > DELETABLE_SECONDS:
                log.warning("message not deleted; it comes again", extra=settlement.item.facts())
                finished.append(settlement)
            else:
                self._waiting.start_soon(self._again, settlement)
        await self._finish(finished)

    async def _hide(self, chunk: list[Settlement]) -> None:
        now = self._pool.clock()
        hidings = [self._hiding(s, now) for s in chunk]
        confirmed, refused = await self._call(chunk, self._queue.hide(hidings), "hide")
        finished = confirmed
        for settlement, refusal in refused:
            if refusal.permanent or now >= _end_of(settlement.item):
                finished.append(settlement)  # its lease has run out: it is visible already
            else:
                self._waiting.start_soon(self._again, settlement)
        await self._finish(finished)

    def _hiding(self, settlement: Settlement, now: float) -> Hiding:
        item = settlement.item
        assert isinstance(settlement.action, HideFor)
        seconds = visibility(settlement.action.seconds, now - item.lease.received_at)
        return Hiding(item.message.receipt_handle, seconds)

    async def _call(
        self, chunk: list[Settlement], call: Awaitable[Sequence[Refusal]], doing: str
    ) -> tuple[list[Settlement], list[tuple[Settlement, Refusal]]]:
        """The confirmed settlements, and the others, each with why."""
        try:
            refusals = {r.index: r for r in await call}
        except Unavailable as error:
            loud = error.kind in (OutageKind.MISSING, OutageKind.DENIED, OutageKind.CREDENTIALS)
            log.log(
                logging.ERROR if loud else logging.WARNING,
                "settling failed and is tried again",
                extra={"queue": self._pool.name, "doing": doing, "error": str(error)},
            )
            whole = Refusal(0, error.kind.value, str(error), permanent=False)
            refusals = dict.fromkeys(range(len(chunk)), whole)
        confirmed = [s for index, s in enumerate(chunk) if index not in refusals]
        refused = [(s, refusals[index]) for index, s in enumerate(chunk) if index in refusals]
        return confirmed, refused

    async def _again(self, settlement: Settlement) -> None:
        settlement.tries += 1
        await anyio.sleep(self._pool.timing.settle_backoff.delay(settlement.tries, self._pool.dice))
        self._outgoing.send_nowait(settlement)

    def _keep(self, settlement: Settlement, refusal: Refusal) -> None:
        """No letter can be sent now, so the message stays, and comes back for another try."""
        facts = {**settlement.item.facts(), "code": refusal.code, "error": refusal.message}
        log.error("dead-letter queue not reached; the message is kept", extra=facts)
        count = settlement.item.message.receive_count
        settlement.action = HideFor(self._pool.timing.letter_backoff.delay(count, self._pool.dice))
        settlement.tries = 0
        self._enqueue([settlement])

    async def _finish(self, settlements: Iterable[Settlement]) -> None:
        finished = list(settlements)
        if not finished:
            return
        items = [s.item for s in finished]
        # Told before they are let go: a drain ends when nothing is in hand any more.
        self._leases.settled(items)
        self._pool.hand.drop(items)
        for settlement in finished:
            if settlement.finished is not None:
                settlement.finished.set()

    def _tell_buried(self, settlement: Settlement) -> None:
        action = settlement.action
        assert isinstance(action, SendLetter)
        log.warning(
            "message dead-lettered",
            extra={
                **settlement.item.facts(),
                "payload": Payload(settlement.item.message.body),
                "reason": action.cause.reason.value,
                "error": action.cause.error,
                "handlers": [d.handler for d in action.dead],
            },
        )
        if not action.dead:
            self._pool.observer.dead_lettered(NO_HANDLER, action.cause.reason)
        for dead in action.dead:
            self._pool.observer.dead_lettered(dead.handler, dead.letter.reason)


def _failure(refusal: Refusal) -> str:
    """Why a delete failed, out of a closed set, since it becomes a metric's label."""
    if refusal.permanent:
        return "refused"
    if refusal.code in set(OutageKind):
        return refusal.code
    return OutageKind.SERVER_FAULT.value


def _sorted(
    batch: Iterable[Settlement],
) -> tuple[list[Settlement], list[Settlement], list[Settlement]]:
    letters: list[Settlement] = []
    deletes: list[Settlement] = []
    hides: list[Settlement] = []
    for settlement in batch:
        match settlement.action:
            case SendLetter():
                letters.append(settlement)
            case Delete():
                deletes.append(settlement)
            case HideFor():
                hides.append(settlement)
            case _:
                assert_never(settlement.action)
    return letters, deletes, hides


def _chunks(settlements: list[Settlement]) -> Iterable[list[Settlement]]:
    return (settlements[i : i + BATCH] for i in range(0, len(settlements), BATCH))


def _end_of(item: Item) -> float:
    """The last moment at which the message can still be ours."""
    lease = item.lease
    end = lease.permitted_until if item.held else lease.received_at
    return end + lease.visibility_seconds
