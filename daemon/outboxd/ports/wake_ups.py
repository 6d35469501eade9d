"""What lets an idle relay sleep until a producer commits."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID


class WakeUps(Protocol):
    """Producers that commit an event notify one channel, but only while a sleeper is known.

    Everything raises core.errors.Unavailable.
    """

    def listening(self) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        """Listen for the length of the block. The iterator gives the notifications that are sent
        within it: "" from a producer, a relay's id from that relay's `declare` or `renew`; it ends
        by raising. Nothing is promised about a connection that is broken without a word."""

    async def declare(self, relay: UUID) -> int:
        """Be known as asleep, for SLEEPER_SECONDS, to every statement of a producer that begins
        from now on; and notify the channel. Returns a transaction number: who writes first in a
        transaction of a lower one may not know."""

    async def oldest_open(self) -> int:
        """The number of the oldest transaction that has written and is open."""

    async def renew(self, relay: UUID) -> bool:
        """Stay known as asleep, and notify the channel. False: producers did not know it, or do
        not notify, so there may be something to read."""

    async def withdraw(self, relay: UUID) -> None:
        """Be known as awake."""


SLEEPER_SECONDS = 30.0
"""How long producers believe in a sleeper that says nothing: so long they pay for a killed one."""
