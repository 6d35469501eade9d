"""The supervisor's end of one incarnation's channel: a bounded queue out, a reader in."""

from collections.abc import Callable

import anyio
from anyio.abc import SocketStream

from outboxd.channels.bridge import FrameReader, frame
from outboxd.channels.protocol import Address, Message
from outboxd.core.errors import ProtocolError

QUEUED_FRAMES = 1024
"""Control frames that may wait for a child that does not read; one more and the child is ended."""


class Link:
    """Never awaits the child: what cannot be written now waits in a bounded queue.

    The kernel's buffer of a socket pair takes some hundred kilobytes; a supervisor that awaited one
    stopped child's socket would stop for all of them.
    """

    def __init__(
        self,
        address: Address,
        stream: SocketStream,
        wrote: Callable[[], None],
        overflowed: Callable[[], None],
    ) -> None:
        self.address = address
        self._stream = stream
        self._wrote = wrote
        self._overflowed = overflowed
        self._sender, self._queue = anyio.create_memory_object_stream[Message](QUEUED_FRAMES)

    def tell(self, message: Message) -> None:
        """Queue a frame for the child. Frames to one that has ended go nowhere."""
        try:
            self._sender.send_nowait(message)
        except anyio.WouldBlock:
            self._overflowed()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    @property
    def queued(self) -> int:
        return self._sender.statistics().current_buffer_used

    async def write_frames(self) -> None:
        """Write queued frames until the child is gone."""
        async for message in self._queue:
            try:
                await self._stream.send(frame(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            self._wrote()

    async def read_frames(self, took: Callable[[Message], None]) -> ProtocolError | None:
        """Hand every frame to `took` until end of file; the error if one was not understood."""
        reader = FrameReader(self._stream)
        try:
            while (message := await reader.read()) is not None:
                took(message)
        except ProtocolError as error:
            return error
        return None

    def close(self) -> None:
        """Drop what is still queued."""
        self._sender.close()
        self._queue.close()
