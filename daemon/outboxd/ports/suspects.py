"""Messages that may have crashed the process that handled them, remembered across processes."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from outboxd.channels.protocol import Suspect
from outboxd.core.messages import ReceivedMessage


class Suspicion(msgspec.Struct, frozen=True):
    """What stands against a message: how often its process died while it ran alone in it, and how
    the process ended the last time."""

    crashes_alone: int
    reason: str


class Suspects(Protocol):
    """The suspects of one queue. Every call raises Unavailable in an outage."""

    async def record(self, suspects: Sequence[Suspect]) -> None:
        """Remember what a dead process left, before the first poll. A death counts once, however
        often it is recorded: again when the answer was lost, or by the next process when this one
        died first."""

    async def look_up(self, messages: Sequence[ReceivedMessage]) -> Mapping[str, Suspicion]:
        """What stands against these messages, by message id; most have nothing against them."""

    async def cleared(self, message_ids: Sequence[str]) -> None:
        """These have come to their end without a crash."""
