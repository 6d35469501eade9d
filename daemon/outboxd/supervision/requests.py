"""What was asked for, by one or by several who all wait for the same end of it."""

from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Request(Generic[T]):
    """Is concluded once; what comes later changes nothing."""

    def __init__(self) -> None:
        self._done = anyio.Event()
        self._outcomes: list[T] = []

    def conclude(self, outcome: T) -> None:
        self._outcomes.append(outcome)
        self._done.set()

    async def outcome(self) -> T:
        """How it ended."""
        await self._done.wait()
        return self._outcomes[0]
