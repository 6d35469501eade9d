"""A queue in memory that keeps the promises of `ports.queue.Queue`, and breaks them on request."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count

import anyio
import anyio.lowlevel

from outboxd.core.clock import boottime
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.letters import Letter
from outboxd.core.messages import Attribute, ReceivedMessage
from outboxd.ports.queue import Depth, Hiding, Refusal

SECOND = 0.02
"""How long a long poll really waits for each second asked for: a drain joins it."""


class _Stored:
    def __init__(
        self, message_id: str, body: str, attributes: dict[str, Attribute], group: str | None
    ) -> None:
        self.message_id = message_id
        self.body = body
        self.attributes = attributes
        self.sent_at = time.time()
        self.visible_at = 0.0
        self.receipt = ""
        self.receives = 0
        self.backing_off = False
        self.group = group


class FakeQueue:
    """The semantics of SQS on the given clock, with FIFO's if its name says so; `history` tells
    what was asked of it, in order.

    `faults` maps an operation to what its next calls raise or refuse: an Unavailable fails the
    call, a Refusal one entry of it, None lets it pass. `chance` is asked before every call.
    """

    def __init__(
        self,
        clock: Callable[[], float] = boottime,
        visibility_seconds: int = 30,
        name: str = "",
    ) -> None:
        self._fifo = name.endswith(".fifo")
        self._clock = clock
        self._visibility = visibility_seconds
        self._numbers = count(1)
        self._receipts = count(1)
        self._messages: dict[str, _Stored] = {}
        self._arrival = anyio.Event()
        self.letters: list[Letter] = []
        self.history: list[str] = []
        self.batches: list[tuple[str, int]] = []
        self.receives = 0
        self.faults: dict[str, deque[Unavailable | Refusal | None]] = {}
        self.chance: Callable[[], bool] = lambda: False
        self.receiving = anyio.Event()
        self.hold_receives: anyio.Event | None = None
        self.takes_letters = True

    def send(
        self,
        body: str,
        attributes: dict[str, Attribute] | None = None,
        group: str | None = None,
    ) -> str:
        message_id = f"m{next(self._numbers)}"
        self._messages[message_id] = _Stored(message_id, body, attributes or {}, group)
        self._arrival.set()
        return message_id

    def again(self, message_id: str) -> None:
        """Make a message visible at once, as its visibility timeout would in time."""
        self._messages[message_id].visible_at = 0.0
        self._arrival.set()

    def extend(self, seconds: float) -> None:
        """What an extender would do for everything in flight."""
        for message in self._messages.values():
            if message.visible_at > 0.0:
                message.visible_at += seconds

    def redeliver(self, message_id: str) -> None:
        """Let the next receive of a message be its second at least."""
        self._messages[message_id].receives += 1

    def hurry(self) -> None:
        """End every backoff; what is in flight stays hidden."""
        for message in self._messages.values():
            if message.backing_off:
                self.again(message.message_id)

    def fail(self, operation: str, *outcomes: Unavailable | Refusal | None) -> None:
        self.faults.setdefault(operation, deque()).extend(outcomes)

    @property
    def size(self) -> int:
        return len(self._messages)

    @property
    def visible(self) -> int:
        return sum(m.visible_at <= self._clock() for m in self._messages.values())

    def holds(self, message_id: str) -> bool:
        return message_id in self._messages

    def backing_off(self, message_id: str) -> bool:
        message = self._messages.get(message_id)
        return message is not None and message.backing_off and message.visible_at > self._clock()

    def receives_of(self, message_id: str) -> int:
        return self._messages[message_id].receives

    async def receive(self, limit: int, wait_seconds: int) -> Sequence[ReceivedMessage]:
        assert 1 <= limit <= 10
        self.receives += 1
        self.receiving.set()
        self._maybe_fail("receive")
        with anyio.move_on_after(wait_seconds * SECOND):
            while not (found := self._visible(limit)):
                self._arrival = anyio.Event()
                with anyio.move_on_after(0.005):  # a hidden message may come up
                    await self._arrival.wait()
        granted = [self._grant(message) for message in found]
        if self.hold_receives is not None:
            await self.hold_receives.wait()
            granted = granted or [self._grant(message) for message in self._visible(limit)]
        await anyio.lowlevel.checkpoint()
        return granted

    async def delete(self, receipt_handles: Sequence[str]) -> Sequence[Refusal]:
        refusal = await self._entries("delete", len(receipt_handles))
        for index, handle in enumerate(receipt_handles):
            if refusal is None or refusal.index != index:
                message = self._of(handle)
                if message is not None:
                    del self._messages[message.message_id]
                    self.history.append(f"deleted {message.message_id}")
        return [] if refusal is None else [refusal]

    async def hide(self, hidings: Sequence[Hiding]) -> Sequence[Refusal]:
        refusal = await self._entries("hide", len(hidings))
        refusals = [] if refusal is None else [refusal]
        for index, hiding in enumerate(hidings):
            if refusal is not None and refusal.index == index:
                continue
            message = self._of(hiding.receipt_handle)
            if message is None or message.visible_at <= self._clock():
                refusals.append(Refusal(index, "MessageNotInflight", "", permanent=True))
                continue
            message.visible_at = self._clock() + hiding.seconds
            message.backing_off = True
            self.history.append(f"hid {message.message_id} for {hiding.seconds} s")
            self._arrival.set()
        return refusals

    async def bury(self, letters: Sequence[Letter]) -> Sequence[Refusal]:
        refusal = await self._entries("bury", len(letters))
        if not self.takes_letters:
            raise Unavailable("no such queue", OutageKind.MISSING)
        for index, letter in enumerate(letters):
            if refusal is None or refusal.index != index:
                self.letters.append(letter)
                self.history.append(f"buried {letter.body[:40]}")
        return [] if refusal is None else [refusal]

    async def depth(self) -> Depth:
        visible = self.visible
        return Depth(visible, self.size - visible, 0, len(self.letters))

    async def _entries(self, operation: str, entries: int) -> Refusal | None:
        assert 1 <= entries <= 10
        await anyio.lowlevel.checkpoint()
        self.batches.append((operation, entries))
        return self._maybe_fail(operation)

    def _maybe_fail(self, operation: str) -> Refusal | None:
        if self.chance():
            raise Unavailable(f"{operation} failed", OutageKind.SERVER_FAULT)
        planned = self.faults.get(operation)
        fault = planned.popleft() if planned else None
        if isinstance(fault, Unavailable):
            raise fault
        return fault

    def _visible(self, limit: int) -> list[_Stored]:
        now = self._clock()
        # While one message of a group is hidden the whole group is, also what is before it.
        blocked = {m.group for m in self._messages.values() if self._fifo and m.visible_at > now}
        blocked.discard(None)
        return [
            m for m in self._messages.values() if m.visible_at <= now and m.group not in blocked
        ][:limit]

    def _grant(self, message: _Stored) -> ReceivedMessage:
        message.receives += 1
        message.backing_off = False
        message.receipt = f"r{next(self._receipts)}"
        message.visible_at = self._clock() + self._visibility
        return ReceivedMessage(
            message_id=message.message_id,
            receipt_handle=message.receipt,
            receive_count=message.receives,
            sent_at=message.sent_at,
            body=message.body,
            attributes=message.attributes,
            group_id=message.group,
        )

    def _of(self, receipt: str) -> _Stored | None:
        return next((m for m in self._messages.values() if m.receipt == receipt), None)
