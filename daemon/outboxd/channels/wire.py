"""The socket between a child and its supervisor."""

import asyncio
import socket
from typing import cast

import anyio
from anyio.abc import ByteStream

HIGH_WATER_BYTES = 1 << 21
"""Nothing more is read while so much is not taken: two of the longest frames."""


class _Ends(asyncio.Protocol):
    """What the event loop tells of the socket."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.ended = False
        self.lost = False
        self._transport: asyncio.Transport | None = None
        self.reader: asyncio.Future[None] | None = None
        self.room = anyio.Event()
        self.room.set()
        self.closed = anyio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if len(self.received) > HIGH_WATER_BYTES and self._transport is not None:
            self._transport.pause_reading()
        self._wake_reader()

    def eof_received(self) -> bool:
        self.ended = True
        self._wake_reader()
        return True  # what is still to be said can be said

    def pause_writing(self) -> None:
        self.room = anyio.Event()

    def resume_writing(self) -> None:
        self.room.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.ended = self.lost = True
        self._wake_reader()
        self.room.set()
        self.closed.set()

    def _wake_reader(self) -> None:
        if self.reader is not None and not self.reader.done():
            self.reader.set_result(None)


class Wire(ByteStream):
    """A connected Unix socket as a stream of bytes.

    Not anyio's UNIXSocketStream, which enters the socket into the event loop's selector for each
    wait and takes it out again: three system calls more for each frame that is waited for. The
    supervisor, which does nothing but that, took twice the CPU with it.
    """

    def __init__(self, transport: asyncio.Transport, ends: _Ends) -> None:
        self._transport = transport
        self._ends = ends

    @classmethod
    async def over(cls, connected: socket.socket) -> "Wire":
        """A wire over this socket, which belongs to it from now on."""
        connected.setblocking(False)
        loop = asyncio.get_running_loop()
        transport, ends = await loop.create_unix_connection(_Ends, sock=connected)
        # No more than what the kernel has taken counts as sent: it outlives this process.
        transport.set_write_buffer_limits(high=0)
        return cls(transport, ends)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """What has arrived, as soon as something has. Raises anyio.EndOfStream once the peer, or
        this end, has hung up."""
        ends = self._ends
        while not ends.received:
            if ends.ended:
                raise anyio.EndOfStream
            ends.reader = asyncio.get_running_loop().create_future()
            await ends.reader
        data = bytes(ends.received[:max_bytes])
        del ends.received[:max_bytes]
        if not ends.received and not ends.ended:
            self._transport.resume_reading()
        return data

    async def send(self, item: bytes) -> None:
        """Return once the kernel has taken all of it. Raises anyio.BrokenResourceError if the peer
        is gone. Cancelled, the rest follows nevertheless: no frame is torn."""
        if self._ends.lost or self._transport.is_closing():
            raise anyio.BrokenResourceError
        self._transport.write(item)
        if not self._ends.room.is_set():
            await self._ends.room.wait()
            if self._ends.lost:
                raise anyio.BrokenResourceError

    async def send_eof(self) -> None:
        """Say that nothing more will be said."""
        self._transport.write_eof()

    async def aclose(self) -> None:
        """Hang up."""
        self._transport.abort()
        with anyio.CancelScope(shield=True):
            await self._ends.closed.wait()
