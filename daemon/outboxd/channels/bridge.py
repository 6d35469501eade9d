"""Pumps length-prefixed frames between a socket and an actor's mailbox."""

import struct

import anyio
from anyio.abc import ByteStream

from outboxd.channels.mailbox import Counterpart
from outboxd.channels.protocol import MAX_FRAME_BYTES, Message, decode, encode
from outboxd.core.errors import ProtocolError

_LENGTH = struct.Struct(">I")

RECEIVE_BYTES = 1 << 16


def frame(message: Message) -> bytes:
    """A message as it stands on the wire: four bytes of length, then its body."""
    body = encode(message)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Reads messages off a byte stream, one at a time; what has arrived together costs one receive.

    Not anyio's BufferedByteReceiveStream, which asks a byte stream for the missing bytes only: two
    system calls and turns of the event loop for each frame, so that a burst of many senders is read
    more slowly than it is written.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def read(self) -> Message | None:
        """The next message, or None when the peer is gone.

        A last frame that was cut short by the peer's death is discarded. Raises ProtocolError on a
        frame that is too long or does not decode.
        """
        while (body := self._cut()) is None:
            try:
                self._buffer += await self._stream.receive(RECEIVE_BYTES)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return None
        return decode(body)

    def _cut(self) -> bytes | None:
        """The body of the first frame, once it is there as a whole. Raises ProtocolError."""
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame of {length} bytes exceeds {MAX_FRAME_BYTES} bytes")
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        return body


async def bridge(stream: ByteStream, actor: Counterpart) -> None:
    """Carry messages both ways until the peer hangs up; then the actor's mailbox ends.

    Raises ProtocolError when the peer sends something that is no message.
    """

    async def carry_in() -> None:
        reader = FrameReader(stream)
        while (message := await reader.read()) is not None:
            await actor.tell(message)
        tasks.cancel_scope.cancel()

    async def carry_out() -> None:
        async for parcel in actor.from_actor:
            # What waits goes along: a Settled and the Hold behind it wake their reader once.
            parcels = [parcel, *actor.said()]
            try:
                await stream.send(b"".join(frame(each.message) for each in parcels))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the reader sees the end of the peer and finishes
            finally:
                for each in parcels:
                    each.carried()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(carry_in)
            tasks.start_soon(carry_out)
    finally:
        actor.close()
