"""The messages in a pool's hand: received, and not yet settled."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto

import anyio

from outboxd.actors.consumer.actions import Action
from outboxd.actors.consumer.gates import Change
from outboxd.channels.protocol import Lease
from outboxd.core.envelopes import Incoming
from outboxd.core.log_facts import trace_facts
from outboxd.core.messages import ReceivedMessage
from outboxd.core.settings import HandlerSettings
from outboxd.ports.progress import Progress
from outboxd.ports.queue import BATCH
from outboxd.ports.suspects import Suspicion

SETTLING_LIMIT = 100
"""How many messages may wait to be settled: when SQS takes no deletes, nothing more is received."""


class Stage(Enum):
    """How far a message is."""

    ACTIVE = auto()
    SETTLING = auto()
    GONE = auto()


class Item:
    """One received message on its way through the pool.

    `held` says that the extender was told of it, `lost` that SQS has given it to somebody else,
    `in_thread` that a handler which cannot be interrupted is running. `verdict` is what is to be
    done with a message that is not for any handler, `suspicion` what it may have done to a process,
    `alone` that nothing else runs beside it.
    """

    __slots__ = (
        "alone",
        "handlers",
        "held",
        "in_thread",
        "incoming",
        "lease",
        "lost",
        "message",
        "stage",
        "suspicion",
        "verdict",
    )

    def __init__(self, lease: Lease, message: ReceivedMessage) -> None:
        self.lease = lease
        self.message = message
        self.incoming: Incoming | None = None
        self.handlers: tuple[HandlerSettings, ...] = ()
        self.held = False
        self.lost = False
        self.in_thread = False
        self.verdict: Action | None = None
        self.suspicion: Suspicion | None = None
        self.alone = False
        self.stage = Stage.GONE

    def facts(self) -> dict[str, object]:
        """What a line of the log says of it."""
        facts: dict[str, object] = {
            "queue": self.lease.queue,
            "message_id": self.message.message_id,
            "receive_count": self.message.receive_count,
        }
        if self.incoming is None:
            return facts
        return {
            **facts,
            "event_id": str(self.incoming.id),
            "event_type": self.incoming.type,
            **trace_facts(self.incoming.traceparent),
        }


class Hand:
    """Counts what is in hand, so that a slot is taken exactly once and given back exactly once.

    `progress` is told how many slots are taken: all of them while a message runs alone.
    """

    def __init__(self, concurrency: int, change: Change, progress: Progress) -> None:
        self._concurrency = concurrency
        self._change = change
        self._progress = progress
        self._solitary = False
        self._items: dict[int, Item] = {}
        self._active = 0
        self._empty = anyio.Event()
        self._empty.set()

    @property
    def active(self) -> int:
        """Messages whose handlers have not all ended."""
        return self._active

    @property
    def size(self) -> int:
        """Everything in hand."""
        return len(self._items)

    def room(self) -> int:
        """How many messages may be received now."""
        settling = len(self._items) - self._active
        return max(0, min(BATCH, self._concurrency - self._active, SETTLING_LIMIT - settling))

    def take(self, item: Item) -> None:
        """The message takes a slot."""
        self._items[item.lease.token] = item
        item.stage = Stage.ACTIVE
        self._active += 1
        self._show()
        self._empty = anyio.Event() if self._empty.is_set() else self._empty

    def settle(self, item: Item) -> None:
        """The message's handlers have ended: its slot is free, and it waits to be settled."""
        if item.stage is Stage.ACTIVE:
            item.stage = Stage.SETTLING
            self._active -= 1
            self._progress.handled += 1
            self._show()
            self._change.notify()

    def drop(self, items: Iterable[Item]) -> None:
        """Nothing is left to do for these messages."""
        for item in items:
            if item.stage is Stage.ACTIVE:
                self._active -= 1
            if self._items.pop(item.lease.token, None) is not None:
                item.stage = Stage.GONE
        if not self._items:
            self._empty.set()
        self._show()
        self._change.notify()

    def lose(self, tokens: Iterable[int]) -> None:
        """SQS has given these messages to somebody else."""
        for token in tokens:
            item = self._items.get(token)
            if item is not None:
                item.lost = True

    def unended(self) -> list[Item]:
        """Messages whose handlers have not all ended."""
        return [item for item in self._items.values() if item.stage is Stage.ACTIVE]

    @contextmanager
    def all_slots(self) -> Iterator[None]:
        """What runs in this block takes all slots, however few messages it is."""
        self._solitary = True
        self._show()
        try:
            yield
        finally:
            self._solitary = False
            self._show()

    def interrupted(self) -> list[Item]:
        """Messages whose handlers did not end; those of running threads are left out."""
        return [i for i in self._items.values() if i.stage is Stage.ACTIVE and not i.in_thread]

    def abandon(self) -> list[Item]:
        """Let go of messages whose handlers still run in threads: they end with the process, and
        then the extender gives them back."""
        left = [i for i in self._items.values() if i.stage is Stage.ACTIVE and i.in_thread]
        self.drop(left)
        return left

    async def emptied(self) -> None:
        """Return once nothing is in hand."""
        await self._empty.wait()

    def _show(self) -> None:
        self._progress.in_flight = self._concurrency if self._solitary else self._active
