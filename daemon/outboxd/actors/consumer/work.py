"""What a worker takes: a message, the messages of one group in order, or a batch."""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

from outboxd.actors.consumer.batches import Batch, BatchServer
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.lines import Line, LineServer
from outboxd.actors.consumer.processing import Processor
from outboxd.actors.consumer.settling import Settler
from outboxd.actors.consumer.waiting_work import WaitingWork

Work: TypeAlias = Item | Line | Batch


def messages_in(work: Work) -> Sequence[Item]:
    """The messages that one piece of work is about."""
    return [work] if isinstance(work, Item) else list(work)


class Worker:
    """Does one piece of work after another; as many of these run as there are slots."""

    def __init__(
        self, processor: Processor, settler: Settler, lines: LineServer, batches: BatchServer
    ) -> None:
        self._processor = processor
        self._settler = settler
        self._lines = lines
        self._batches = batches

    async def work(self, waiting: WaitingWork[Work]) -> None:
        """Do what comes until no more comes."""
        while (work := await waiting.next()) is not None:
            await self.do(work)

    async def do(self, work: Work) -> None:
        """See to it that every message of this work is settled."""
        match work:
            case Item():
                action = await self._processor.run(work)
                if action is not None:
                    self._settler.submit(work, action)
            case Line():
                await self._lines.serve(work)
            case Batch():
                await self._batches.serve(work)
            case _:
                assert_never(work)
