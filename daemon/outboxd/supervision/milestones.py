"""How far a slot has come, for whoever waits for its next process."""

import anyio


class Milestones:
    """The numbers of the last incarnation that became ready, and of the last that ended."""

    def __init__(self) -> None:
        self._ready = 0
        self._ended = 0
        self._over = False
        self._news = anyio.Event()

    def became_ready(self, number: int) -> None:
        """The incarnation of that number did; one that is to be replaced already does not count."""
        self._ready = number
        self._tell()

    def ended(self, number: int) -> None:
        """The incarnation of that number has been reaped, or could not even be started."""
        self._ended = number
        self._tell()

    def over(self) -> None:
        """No other one will come."""
        self._over = True
        self._tell()

    async def next_is_ready(self, before: int) -> bool:
        """Wait for what becomes of the first incarnation after number `before`; False also when
        there will be none."""
        while True:
            if self._ready > before:
                return True
            if self._ended > before or self._over:
                return False
            await self._news.wait()

    async def no_other_comes(self) -> None:
        """Return once the slot is over."""
        while not self._over:
            await self._news.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()
