"""When a scripted fault takes hold: its address, its count, its chance and its time."""

import asyncio
from fnmatch import fnmatchcase
from random import Random
from typing import Annotated

import msgspec
from msgspec import Meta

from outboxd.localaws.exchange import Outcome
from outboxd.localaws.faults import Target
from outboxd.localaws.script.kinds import AnyKind, hits

ANY = "*"


class Address(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which calls a fault is meant for.

    `queue` is a glob of the names of queues, topics and event buses. `containing` is a text that
    the call must hold in a body or an attribute. Of the calls that fit, the first `skip` are let
    through; each one after that is hit with `probability`, by dice of this fault's own that `seed`
    determines; after `count` hits (None: any number) or `duration_seconds` of the server's clock
    the fault is over.
    """

    operations: tuple[str, ...] = (ANY,)
    queue: Annotated[str, Meta(min_length=1)] = ANY
    containing: Annotated[str, Meta(min_length=1)] | None = None
    count: Annotated[int, Meta(ge=1)] | None = 1
    skip: Annotated[int, Meta(ge=0)] = 0
    probability: Annotated[float, Meta(gt=0, le=1)] = 1.0
    seed: Annotated[int, Meta(ge=0, lt=2**53)] = 0
    duration_seconds: Annotated[float, Meta(gt=0)] | None = None

    def names(self, operation: str) -> bool:
        """Whether the operation is meant, by name or as one of all."""
        return operation in self.operations or ANY in self.operations

    def meets(self, target: Target) -> bool:
        """Whether such a call is meant, whatever it holds. A call that is about none is meant
        by a fault of all queues only."""
        if target.queue is None:
            return self.queue == ANY and self.names(target.operation)
        return self.names(target.operation) and fnmatchcase(target.queue, self.queue)


class Rule:
    """One fault of the script, and how far it has come."""

    def __init__(self, number: int, kind: AnyKind, address: Address, now: float) -> None:
        self.id = str(number)
        self.kind = kind
        self.address = address
        self.passed = 0
        self.fired = 0
        # Work that is still to be done, whether or not anybody waits for it.
        self.late: set[asyncio.Future[Outcome]] = set()
        self.dice = Random(address.seed)
        duration = address.duration_seconds
        self._ends_at = None if duration is None else now + duration
        self._cleared = False
        self._held: set[asyncio.Future[None]] = set()

    def over(self, now: float) -> bool:
        """Whether it will never take hold again."""
        count = self.address.count
        if count is not None and self.fired >= count:
            return True
        return self._cleared or (self._ends_at is not None and now >= self._ends_at)

    def meets(self, target: Target, now: float) -> bool:
        """Whether a call with this target is one it waits for."""
        if self.over(now) or not hits(self.kind, target.operation):
            return False
        return self.address.meets(target)

    def fires(self) -> bool:
        """Whether it takes hold of this call, one of those it waits for."""
        if self.passed < self.address.skip:
            self.passed += 1
            return False
        if self.address.probability < 1 and self.dice.random() >= self.address.probability:
            self.passed += 1
            return False
        self.fired += 1
        return True

    def clear(self) -> None:
        """Take it back, and let go of what it holds.

        What is let go goes on before the request that arrives next is looked at: whoever has just
        cleared a fault must find its effects. (asyncio's Event and wait_for take some turns more.)
        """
        self._cleared = True
        for held in self._held:
            _release(held)

    async def hold(self, seconds: float | None = None) -> None:
        """Return when the fault is cleared, or after so many seconds."""
        if self._cleared:
            return
        loop = asyncio.get_running_loop()
        held: asyncio.Future[None] = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _release, held)
        self._held.add(held)
        try:
            await held
        finally:
            self._held.discard(held)
            if timer is not None:
                timer.cancel()


def _release(held: "asyncio.Future[None]") -> None:
    if not held.done():
        held.set_result(None)
