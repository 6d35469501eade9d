"""Makes pieces of work out of messages, and hands them to the workers."""

from collections.abc import Iterable

from outboxd.actors.consumer.batches import Gathering
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.lines import Line, Lines
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.settling import Settler
from outboxd.actors.consumer.waiting_work import WaitingWork
from outboxd.actors.consumer.work import Work, messages_in


class Distributor:
    """Messages of a group wait in its line, those for a batch for company, others for nothing."""

    def __init__(self, pool: Pool, lines: Lines, settler: Settler, work: WaitingWork[Work]) -> None:
        self._pool = pool
        self._lines = lines
        self._settler = settler
        self._work = work
        self.gathering = Gathering(pool, self.put)

    def put(self, work: Work) -> None:
        """To the next worker that is free: there are as many as there may be messages at work."""
        if self._work.closed:
            self._settler.release(messages_in(work))
        else:
            self._work.put(work)

    def hand_out(self, items: Iterable[Item]) -> list[Work]:
        """Give the workers what these make; returns what has to run alone, in its order."""
        if self._pool.fifo:
            return self._line_up(items)
        alone: list[Work] = []
        for item in items:
            if item.suspicion is not None:
                alone.append(item)
            elif (handler := item.handlers[0]).batch > 1:
                self.gathering.join(item, handler)
            else:
                self.put(item)
        return alone

    def take_waiting(self) -> list[Item]:
        """Everything that no worker has begun, for a stop to release."""
        return [*self._lines.take_all(), *self.gathering.take_all()]

    def _line_up(self, items: Iterable[Item]) -> list[Work]:
        """A group with a suspect runs alone as a whole: its order would not allow another way."""
        begun: list[Line] = []
        for item in items:
            group = item.message.group_id or ""
            line = self._lines.open(group)
            if line is None:
                line = self._lines.begin(group)
                begun.append(line)
            # A line that is served already has messages that are lost, and cannot run alone.
            line.join(item)
        alone: list[Work] = []
        for line in begun:
            if any(item.suspicion is not None for item in line):
                alone.append(line)
            else:
                self.put(line)
        return alone
