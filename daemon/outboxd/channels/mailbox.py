"""An actor's two ends: what it is told, and what it tells."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from outboxd.channels.protocol import Message

BUFFERED_MESSAGES = 256
"""How many messages wait in memory in each direction before the sender waits."""


class Parcel(NamedTuple):
    """A message on its way out; `written` is set once it has left this process."""

    message: Message
    written: anyio.Event | None = None

    def carried(self) -> None:
        """The message has left this process, or never will because the other end is gone."""
        if self.written is not None:
            self.written.set()


class Mailbox:
    """Two anyio memory channels; the actor cannot tell whether the other end is in this process."""

    def __init__(
        self,
        incoming: MemoryObjectReceiveStream[Message],
        outgoing: MemoryObjectSendStream[Parcel],
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def __aiter__(self) -> AsyncIterator[Message]:
        """The messages told to this actor, until the other end is gone."""
        return self._incoming.__aiter__()

    async def receive(self) -> Message:
        """The next message. Raises anyio.EndOfStream when the other end is gone."""
        return await self._incoming.receive()

    async def send(self, message: Message) -> None:
        """Tell a message; it may still be in this process's memory on return.

        A message to an end that is gone is dropped: the orphan's rules apply then, not an error.
        """
        try:
            await self._outgoing.send(Parcel(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def send_written(self, message: Message) -> None:
        """Tell a message and return once it has left this process, so that it outlives it."""
        written = anyio.Event()  # set also when the other end goes away first
        try:
            await self._outgoing.send(Parcel(message, written))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        await written.wait()

    def close(self) -> None:
        """The actor has ended: it neither listens nor tells anything more."""
        self._incoming.close()
        self._outgoing.close()


class Counterpart:
    """The other end of a mailbox: whoever delivers to the actor and carries away what it says."""

    def __init__(
        self,
        to_actor: MemoryObjectSendStream[Message],
        from_actor: MemoryObjectReceiveStream[Parcel],
    ) -> None:
        self.to_actor = to_actor
        self.from_actor = from_actor

    async def tell(self, message: Message) -> None:
        """Deliver a message to the actor; one that has ended no longer listens."""
        try:
            await self.to_actor.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def heard(self) -> Message:
        """The next message that the actor sends, counted as written by being taken."""
        parcel = await self.from_actor.receive()
        parcel.carried()
        return parcel.message

    def said(self) -> Iterator[Parcel]:
        """What waits to be carried away now."""
        with suppress(anyio.WouldBlock, anyio.EndOfStream, anyio.ClosedResourceError):
            while True:
                yield self.from_actor.receive_nowait()

    def close(self) -> None:
        """Hang up: the actor's mailbox ends, and nobody waits for a parcel that nobody carries."""
        self.to_actor.close()
        for parcel in self.said():
            parcel.carried()
        self.from_actor.close()


def open_mailbox(buffered: int = BUFFERED_MESSAGES) -> tuple[Mailbox, Counterpart]:
    """A mailbox and its other end; tests hold the other end, a bridge holds it in production."""
    to_actor, incoming = anyio.create_memory_object_stream[Message](buffered)
    outgoing, from_actor = anyio.create_memory_object_stream[Parcel](buffered)
    return Mailbox(incoming, outgoing), Counterpart(to_actor, from_actor)
