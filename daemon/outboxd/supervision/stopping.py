"""When a child has to be gone: computed once, then only read."""

import anyio
import msgspec

from outboxd.core.clock import boottime


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
    def of_extender(cls, now: float, end: float, escalation: float) -> "Timetable":
        """The extender: it gives the leases of the dead back, just before the grace's `end`."""
        abort_at = max(now, end - 0.25 * escalation)
        return cls(abort_at, abort_at, abort_at + 0.1 * escalation)


class StopOrder:
    """An order to stop that one child, or several, wait for. It cannot be taken back."""

    def __init__(self) -> None:
        self.given = anyio.Event()
        self._at_once = anyio.Event()
        self._timetable: Timetable | None = None

    @property
    def timetable(self) -> Timetable:
        """Only known once the order has been given."""
        assert self._timetable is not None
        return self._timetable

    def give(self, timetable: Timetable) -> None:
        """Order the stop; the first order's timetable stands."""
        if self._timetable is None:
            self._timetable = timetable
            self.given.set()

    def hurry(self) -> None:
        """End everything now, whatever the timetable says."""
        self._at_once.set()

    @property
    def hurried(self) -> bool:
        return self._at_once.is_set()

    async def until(self, moment: float) -> None:
        """Sleep until `moment`, or until the stop is hurried."""
        with anyio.move_on_after(max(0.0, moment - boottime())):
            await self._at_once.wait()
