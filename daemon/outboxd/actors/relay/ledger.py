"""What destinations have said, and the database does not know yet."""

from itertools import islice

import anyio
import msgspec

from outboxd.core.holdings import Holding
from outboxd.core.outbox import DeliveryMark, FailureMark


class Trouble(msgspec.Struct, frozen=True):
    """An event that is not published, and what is to be written about it: who has it already, that
    it failed, or both. Its lane is parked until that is written; otherwise a read could return it
    with what it had before."""

    lane: int
    holding: Holding
    delivered: DeliveryMark | None
    failure: FailureMark | None


class Ledger:
    """Everything that is accepted or failed and not yet marked, as long as the database is away.

    What is in here is never published again: its rows are left out of reads until they are marked.
    """

    def __init__(self) -> None:
        self._published: dict[int, Holding] = {}
        self._stuck: dict[int, Holding] = {}
        self._troubles: dict[int, Trouble] = {}
        self._stuck_troubles: dict[int, Trouble] = {}
        self.written_on = anyio.Event()

    def publish(self, seq: int, holding: Holding) -> None:
        """Every destination has this row's event."""
        self._published[seq] = holding
        self.written_on.set()

    def trouble(self, seq: int, trouble: Trouble) -> None:
        """This row's event is not published."""
        former = self._troubles.get(seq)
        if former is not None:  # of an earlier ownership of the bucket, and overtaken
            former.holding.open -= 1
        self._troubles[seq] = trouble
        self.written_on.set()

    @property
    def unsettled(self) -> int:
        """How many accepted rows are not marked."""
        return len(self._published) + len(self._stuck)

    @property
    def empty(self) -> bool:
        """Nothing is left that could be written."""
        return not self._published and not self._troubles

    def unsettled_seqs(self) -> list[int]:
        """The accepted rows that are not marked."""
        return [*self._published, *self._stuck]

    def published(self, at_most: int) -> list[int]:
        """The oldest accepted rows to be marked."""
        return list(islice(self._published, at_most))

    def troubles(self, at_most: int) -> list[tuple[int, Trouble]]:
        """The oldest of the others."""
        return list(islice(self._troubles.items(), at_most))

    def stuck(self) -> list[int]:
        """The rows that the database refuses to mark."""
        return list(self._stuck)

    def settled(self, seq: int) -> Holding:
        """This row is marked."""
        if seq in self._stuck:
            return self._stuck.pop(seq)
        return self._published.pop(seq)

    def stick(self, seq: int) -> None:
        """This row cannot be marked; it must neither hold up the others nor be forgotten."""
        if seq in self._published:
            self._stuck[seq] = self._published.pop(seq)

    def written(self, seq: int, trouble: Trouble) -> bool:
        """This is written; returns False when there is something newer to write about the row."""
        if self._troubles.get(seq) is not trouble:
            return False
        del self._troubles[seq]
        return True

    def stick_trouble(self, seq: int) -> None:
        """The database refuses this; the lane stays parked, for its order and its deliveries
        would be lost otherwise."""
        self._stuck_troubles[seq] = self._troubles.pop(seq)

    def unstick_troubles(self) -> None:
        """Try once more to write what was refused."""
        self._troubles = {**self._stuck_troubles, **self._troubles}
        self._stuck_troubles = {}
