"""Why a pool does not receive at the moment."""

from enum import StrEnum

import anyio


class Obstacle(StrEnum):
    """Each stands for itself: receiving goes on when the last one is gone."""

    EXTENDER = "extender"
    DATABASE = "database"
    PAUSED = "paused"
    SUSPECTS = "suspects"


class Change:
    """Wakes whoever waits for some state to change; the waiter looks at the state itself."""

    def __init__(self) -> None:
        self._event: anyio.Event | None = None

    def notify(self) -> None:
        """Something has changed."""
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        """Return at the next change."""
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()


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
