"""The inbox of a pool without a database: SQS's receive count serves as the number of attempts."""

from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter
from outboxd.ports.inbox import Standing


class ReceiveCounts:
    """Remembers nothing, so every delivery runs every handler, and a deploy costs an attempt."""

    remembers = False

    async def standings(
        self, event_id: UUID, message: ReceivedMessage, handlers: Sequence[str]
    ) -> Mapping[str, Standing]:
        return {handler: Standing(attempts=message.receive_count - 1) for handler in handlers}

    async def tried(
        self, handler: str, deliveries: Sequence[tuple[UUID, ReceivedMessage]]
    ) -> Set[UUID]:
        return {event_id for event_id, message in deliveries if message.receive_count > 1}

    async def failed(
        self, event_id: UUID, message: ReceivedMessage, handler: str, error: str
    ) -> int:
        return message.receive_count

    async def noted(
        self, event_id: UUID, message: ReceivedMessage, handler: str, error: str
    ) -> None:
        return

    async def dead(
        self, event_id: UUID, message: ReceivedMessage, handler: str, letter: DeadLetter
    ) -> None:
        return

    async def ping(self) -> None:
        return
