"""The messages of one FIFO group, in order: the next begins when the one before it has ended."""

from collections import deque
from collections.abc import Iterator

from outboxd.actors.consumer.actions import Action, SendLetter
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.processing import Processor
from outboxd.actors.consumer.settling import Settler
from outboxd.core.message_plan import Delete, HideFor


class Line:
    """What is in hand of one message group, the head first."""

    def __init__(self, group: str) -> None:
        self.group = group
        self._waiting: deque[Item] = deque()

    def __iter__(self) -> Iterator[Item]:
        return iter(self._waiting)

    def join(self, item: Item) -> None:
        """Wait at the end."""
        self._waiting.append(item)

    def next(self) -> Item | None:
        """The head, which then waits no longer; None if nobody waits."""
        return self._waiting.popleft() if self._waiting else None

    def take_all(self) -> list[Item]:
        """Everybody, who then wait no longer."""
        items = list(self._waiting)
        self._waiting.clear()
        return items


class Lines:
    """One line for each group, so that a group is served by one worker at a time."""

    def __init__(self) -> None:
        self._lines: dict[str, Line] = {}

    def open(self, group: str) -> Line | None:
        """The line of a group that is being served, or is about to be."""
        return self._lines.get(group)

    def begin(self, group: str) -> Line:
        """A new line, to be served."""
        line = self._lines[group] = Line(group)
        return line

    def end(self, line: Line) -> None:
        """Nobody serves this line any more."""
        del self._lines[line.group]

    def take_all(self) -> list[Item]:
        """Everybody who waits in any line."""
        return [item for line in self._lines.values() for item in line.take_all()]


class LineServer:
    """Serves a group until its line is empty, or until its head has to be tried again.

    Then the head is hidden first, and its followers are released after that: as long as one of them
    is hidden SQS hands out nothing of the group, and once none is, the head comes first again.
    """

    def __init__(self, pool: Pool, lines: Lines, processor: Processor, settler: Settler) -> None:
        self._pool = pool
        self._lines = lines
        self._processor = processor
        self._settler = settler

    async def serve(self, line: Line) -> None:
        """Handle who waits in the line, one after another."""
        try:
            while (item := line.next()) is not None:
                if not await self._ended(item):
                    self._settler.release(line.take_all())
        finally:
            self._lines.end(line)

    async def _ended(self, item: Item) -> bool:
        """Handle a head: whether the next in line may begin."""
        action = await self._processor.run(item)
        self._pool.failed_heads.ended(item.message.message_id)
        match action:
            case None:
                return False
            case Delete():
                # It has taken effect: should its delete fail, it comes again as a duplicate.
                self._settler.submit(item, action)
                return not item.lost
            case HideFor() | SendLetter():
                return await self._settled(item, action)

    async def _settled(self, item: Item, action: Action) -> bool:
        carried_out = await self._settler.settle(item, action)
        if isinstance(carried_out, HideFor):  # also when its letter could not be sent
            visible_at = self._pool.clock() + carried_out.seconds
            self._pool.failed_heads.failed(item.message.message_id, visible_at)
            return False
        return not item.lost
