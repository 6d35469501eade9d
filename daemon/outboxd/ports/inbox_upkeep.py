"""What the janitor of the inbox needs: of the database, of SQS, and of whoever counts."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from outboxd.core.inbox_retention import Polled


class Kept(StrEnum):
    """What is purged of the inbox; a metric's label."""

    MARKS = "processed_events"
    FAILURES = "handler_failures"
    SUSPECTS = "suspects"


class Polls(msgspec.Struct, frozen=True):
    """What every queue has said of itself, and the database's time, by which all of it is."""

    now: float
    polls: Sequence[Polled]


class InboxUpkeep(Protocol):
    """Everything raises core.errors.Unavailable. Times are Unix seconds by the database's clock."""

    async def polled(self, queue: str, lasting_seconds: float | None) -> None:
        """Write down that the queue is being polled, and the gap before if that was an outage."""

    async def polls(self) -> Polls:
        """When every queue was polled."""

    async def purge_marks(self, since: float, before: float, limit: int) -> int | None:
        """Delete at most `limit` marks of that time; how many, or None while somebody else does."""

    async def purge_failures(self, before: float, limit: int) -> int | None:
        """The same for failures that are older."""

    async def purge_suspects(self, older_than_seconds: float, limit: int) -> int:
        """Delete at most `limit` suspects whose last crash is older; returns how many."""

    async def forget_gaps(self, before: float) -> None:
        """Forget gaps that ended before, and queues that are no longer polled."""


class QueueLife(Protocol):
    """How long a message of a queue may come back."""

    async def lasting_seconds(self) -> float:
        """The retention of the queue and of its dead-letter queue together, as they are in SQS
        now. Raises Unavailable."""


class InboxObserver(Protocol):
    """Facts of the janitor, in the past tense."""

    def purged(self, kept: Kept, rows: int) -> None:
        """Rows that were old enough are deleted."""

    def kept(self, seconds: float) -> None:
        """Marks younger than this are kept now: longer than configured after an outage."""

    def failed(self) -> None:
        """A round could not be made, or not to its end; it is made again."""
