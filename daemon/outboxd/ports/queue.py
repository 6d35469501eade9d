"""The queue that a consumer pool works on, and its dead-letter queue."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from outboxd.core.letters import Letter
from outboxd.core.messages import ReceivedMessage

BATCH = 10
"""The most messages that one call receives or settles."""


class Hiding(msgspec.Struct, frozen=True):
    """Make a received message visible again `seconds` from now; 0 is at once."""

    receipt_handle: str
    seconds: int


class Refusal(msgspec.Struct, frozen=True):
    """The entry at `index` of a batch was not carried out.

    `permanent` means that the same entry will never be: the receipt is no longer ours, or the queue
    does not take such a message.
    """

    index: int
    code: str
    message: str
    permanent: bool


class Depth(msgspec.Struct, frozen=True):
    """How many messages there are, approximately; `dead_letters` is None if that is not known."""

    visible: int
    in_flight: int
    delayed: int
    dead_letters: int | None


class Queue(Protocol):
    """Every call takes at most BATCH entries and raises Unavailable when as a whole it did not
    succeed; an entry is carried out for certain only if it is not among the refusals returned."""

    async def receive(self, limit: int, wait_seconds: int) -> Sequence[ReceivedMessage]:
        """Up to `limit` messages, hidden from others from about now on; waits for the first.

        Cancelling abandons the call: what it still brings stays hidden until its time is over.
        """

    async def delete(self, receipt_handles: Sequence[str]) -> Sequence[Refusal]:
        """Remove messages for good; one that is gone already counts as removed."""

    async def hide(self, hidings: Sequence[Hiding]) -> Sequence[Refusal]:
        """Change when messages become visible again."""

    async def bury(self, letters: Sequence[Letter]) -> Sequence[Refusal]:
        """Send messages to the dead-letter queue."""

    async def depth(self) -> Depth:
        """Count the messages of the queue and of its dead-letter queue."""
