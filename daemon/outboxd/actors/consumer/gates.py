"""Why a pool does not receive at the moment."""

from collections.abc import Callable
from enum import StrEnum

import anyio


class Obstacle(StrEnum):
    """Each stands for itself: receiving goes on when the last one is gone."""

    EXTENDER = "extender"
    DATABASE = "database"
    PAUSED = "paused"
    SUSPECTS = "suspects"


class Change:
    """Wakes whoever waits for some state to come.

    What is waited for is looked at by who changes something, not by who waits: a task that is woken
    for every message of ten, to find that nine were not enough, costs more than its look.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Callable[[], bool], anyio.Event]] = []

    def notify(self) -> None:
        """Something has changed."""
        for has_come, event in self._waiting:
            if has_come():
                event.set()

    async def until(self, has_come: Callable[[], bool]) -> None:
        """Return once `has_come`, which is asked now and at every change."""
        if has_come():
            return
        waiting = (has_come, anyio.Event())
        self._waiting.append(waiting)
        try:
            await waiting[1].wait()
        finally:
            self._waiting.remove(waiting)


class Gates:
    """The obstacles that stand in the way now."""

    def __init__(self, change: Change, *obstacles: Obstacle) -> None:
        self._change = change
        self._obstacles = set(obstacles)

    @property
    def open(self) -> bool:
        """Whether nothing stands in the way."""
        return not self._obstacles

    @property
    def obstacles(self) -> frozenset[Obstacle]:
        return frozenset(self._obstacles)

    def close(self, obstacle: Obstacle) -> None:
        """The obstacle has come up."""
        self._obstacles.add(obstacle)

    def clear(self, obstacle: Obstacle) -> None:
        """The obstacle is gone."""
        self._obstacles.discard(obstacle)
        self._change.notify()
