"""What is remembered of an event's handlers between two deliveries of its message."""

from collections.abc import Mapping, Sequence, Set
from typing import Protocol
from uuid import UUID

import msgspec

from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter


class Standing(msgspec.Struct, frozen=True):
    """How far a handler came with an event: failed attempts, and how it ended if it has."""

    attempts: int = 0
    done: bool = False
    dead: DeadLetter | None = None


class Inbox(Protocol):
    """Remembers failures by event and handler. Every call raises Unavailable in an outage."""

    remembers: bool
    """Whether what is told here is still known at the message's next delivery."""

    async def standings(
        self, event_id: UUID, message: ReceivedMessage, handlers: Sequence[str]
    ) -> Mapping[str, Standing]:
        """How far these handlers came with the event; one that is left out has not begun.

        A redrive, which brings a new message, starts afresh what was dead; what is done stays done.
        """

    async def tried(
        self, handler: str, deliveries: Sequence[tuple[UUID, ReceivedMessage]]
    ) -> Set[UUID]:
        """Those of these events at which the handler has failed before, finally or not."""

    async def failed(
        self, event_id: UUID, message: ReceivedMessage, handler: str, error: str
    ) -> int:
        """Count a failed attempt; how many there are now."""

    async def noted(
        self, event_id: UUID, message: ReceivedMessage, handler: str, error: str
    ) -> None:
        """Remember an error that is no attempt: from now on the event is among those `tried`."""

    async def dead(
        self, event_id: UUID, message: ReceivedMessage, handler: str, letter: DeadLetter
    ) -> None:
        """The handler will not be called again for this message."""

    async def ping(self) -> None:
        """Return once the database can be written to."""
