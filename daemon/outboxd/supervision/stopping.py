"""When a child has to be gone: told from above, and only ever moved nearer."""

import weakref

import anyio
import msgspec

from outboxd.core.clock import boottime

LAST_WORD_SECONDS = 2.0


class Timetable(msgspec.Struct, frozen=True):
    """The moments of a stop, as `boottime()`: finish, dump the stack and end, be killed."""

    drain_by: float
    abort_at: float
    kill_at: float

    @classmethod
    def of_workers(cls, now: float, grace: float, escalation: float) -> "Timetable":
        """Consumers and relay: what the grace leaves before the escalation begins."""
        abort_at = now + grace - escalation
        return cls(abort_at, abort_at, abort_at + 0.3 * escalation)

    @classmethod
    def of_replacement(cls, now: float, patience: float, escalation: float) -> "Timetable":
        """One child that may take `patience` seconds to finish, and then say its last word."""
        drain_by = now + patience
        abort_at = drain_by + LAST_WORD_SECONDS
        return cls(drain_by, abort_at, abort_at + 0.3 * escalation)

    @classmethod
    def of_extender(cls, now: float, end: float, escalation: float) -> "Timetable":
        """The extender: it gives the leases of the dead back, just before the grace's `end`."""
        abort_at = max(now, end - 0.25 * escalation)
        return cls(abort_at, abort_at, abort_at + 0.1 * escalation)


class StopOrder:
    """An order to stop that one child, or several, wait for. It cannot be taken back.

    Orders form a tree: the whole daemon, one slot of it, one process of the slot. What is ordered
    above is ordered below, so that a stop of the daemon also reaches a process which is draining
    for another reason, and shortens its time.
    """

    def __init__(self) -> None:
        self.given = anyio.Event()
        self._at_once = anyio.Event()
        self._news = anyio.Event()
        self._timetable: Timetable | None = None
        self._parts: weakref.WeakSet[StopOrder] = weakref.WeakSet()

    def part(self) -> "StopOrder":
        """An order for a part of what this one is for."""
        part = StopOrder()
        self._parts.add(part)
        if self._timetable is not None:
            part.give(self._timetable)
        if self.hurried:
            part.hurry()
        return part

    @property
    def timetable(self) -> Timetable:
        """Only known once the order has been given."""
        assert self._timetable is not None
        return self._timetable

    def give(self, timetable: Timetable) -> None:
        """Order the stop; of several timetables the one that ends first stands."""
        if self._timetable is None or timetable.kill_at < self._timetable.kill_at:
            self._timetable = timetable
            self._tell()
        self.given.set()
        for part in list(self._parts):
            part.give(timetable)

    def hurry(self) -> None:
        """End everything now, whatever the timetable says."""
        self._at_once.set()
        self._tell()
        for part in list(self._parts):
            part.hurry()

    @property
    def hurried(self) -> bool:
        return self._at_once.is_set()

    async def until(self, moment: float) -> None:
        """Sleep until `moment`, or until the stop is hurried or its timetable has changed."""
        with anyio.move_on_after(max(0.0, moment - boottime())):
            await self._news.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()
