"""Work that waits for a worker, and workers that wait for work."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class WaitingWork(Generic[T]):
    """Each piece goes to one worker, in the order in which it came.

    Not a memory stream of anyio, whose `receive` gives way to all other tasks twice: with a handler
    that does nothing that was a tenth of what a message cost. Who takes what is there already does
    not give way at all, so this is not for who has nothing else to wait for.
    """

    def __init__(self) -> None:
        self._pieces: deque[T] = deque()
        self._workers: deque[asyncio.Future[None]] = deque()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether no more is taken."""
        return self._closed

    def put(self, piece: T) -> None:
        """Leave it to the next worker that is free. Not after `close`."""
        assert not self._closed
        self._pieces.append(piece)
        self._wake()

    def close(self) -> None:
        """No more will come: workers end when all that waits is taken."""
        self._closed = True
        while self._workers:
            self._wake()

    async def next(self) -> T | None:
        """A piece for the worker that asks; None when no more will come."""
        while not self._pieces:
            if self._closed:
                return None
            await self._news()
        return self._pieces.popleft()

    async def _news(self) -> None:
        news = asyncio.get_running_loop().create_future()
        self._workers.append(news)
        await news

    def _wake(self) -> None:
        while self._workers:
            news = self._workers.popleft()
            if not news.done():  # cancelled, that is: it waits no more
                news.set_result(None)
                return
