"""The supervisor's end of one incarnation's channel: a bounded queue out, a reader in."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import anyio
import anyio.lowlevel
from anyio.abc import ByteStream

from outboxd.channels.bridge import FrameReader, frame
from outboxd.channels.protocol import Address, Message
from outboxd.core.errors import ProtocolError

QUEUED_FRAMES = 8192
"""Control frames that may wait for a child that does not read; one more and the child is ended."""

BURST_FRAMES = 32
"""After so many frames of one child the others have their turn, and what was routed is written."""


class Link:
    """Never awaits the child: what cannot be written now waits in a bounded queue.

    The kernel's buffer of a socket pair takes some hundred kilobytes; a supervisor that awaited one
    stopped child's socket would stop for all of them.
    """

    def __init__(
        self,
        address: Address,
        stream: ByteStream,
        wrote: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        """`failed` is told why the child cannot be told anything any more, and has to end it."""
        self.address = address
        self._stream = stream
        self._wrote = wrote
        self._failed = failed
        self._sender, self._queue = anyio.create_memory_object_stream[Message](QUEUED_FRAMES)

    def tell(self, message: Message) -> None:
        """Queue a frame for the child. Frames to one that has ended go nowhere."""
        try:
            self._sender.send_nowait(message)
        except anyio.WouldBlock:
            self._failed("it does not read its channel")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    @property
    def queued(self) -> int:
        return self._sender.statistics().current_buffer_used

    async def write_frames(self) -> None:
        """Write queued frames until the child is gone.

        All that wait at once: written one by one, they would be overtaken by the bursts of several
        pools, and a child that reads would be ended as one that does not.
        """
        async for message in self._queue:
            try:
                frames = [frame(message), *map(frame, self._waiting())]
            except ProtocolError as error:  # a welcome with settings of a megabyte
                self._failed(f"it cannot be told what it has to know: {error}")
                return
            try:
                await self._stream.send(b"".join(frames))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return
            for _ in frames:
                self._wrote()

    def _waiting(self) -> Iterator[Message]:
        with suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                yield self._queue.receive_nowait()

    async def read_frames(self, took: Callable[[Message], None]) -> ProtocolError | None:
        """Hand every frame to `took` until end of file; the error if one was not understood."""
        reader = FrameReader(self._stream)
        try:
            for number in count(1):
                if (message := await reader.read()) is None:
                    break
                took(message)
                # What has arrived together is read without a pause. After a stall that is a lot.
                if number % BURST_FRAMES == 0:
                    await anyio.lowlevel.checkpoint()
        except ProtocolError as error:
            return error
        return None

    def close(self) -> None:
        """Drop what is still queued."""
        self._sender.close()
        self._queue.close()
