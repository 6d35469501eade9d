"""Calls back when a movable clock reads a given time."""

import asyncio
from collections.abc import Callable

from outboxd.localaws.clock import Clock


class Alarm:
    """At most one appointment; it rings once, at the latest a loop tick after its time.

    It may ring a moment early (timers of the event loop round), so the callback looks at the clock
    again and sets the alarm anew if nothing was due.
    """

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._when: float | None = None
        self._timer: asyncio.Handle | None = None
        self._ignore_clock = clock.on_advance(self._rearm)

    def set(self, when: float | None) -> None:
        """Ring at `when`, and not at any time set before; None: do not ring."""
        if when != self._when:
            self._when = when
            self._rearm()

    def set_by(self, when: float | None) -> None:
        """Ring at `when` at the latest: an earlier setting stays."""
        if when is not None and (self._when is None or when < self._when):
            self.set(when)

    def close(self) -> None:
        self.set(None)
        self._ignore_clock()

    def _rearm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._when is not None:
            delay = self._when - self._clock.now()
            # What is due goes before the requests that arrive next, which a timer would not:
            # whoever has just moved the clock must find its effects.
            self._timer = (
                self._loop.call_later(delay, self._fire)
                if delay > 0
                else self._loop.call_soon(self._fire)
            )

    def _fire(self) -> None:
        self._timer = None
        self._when = None
        self._ring()
