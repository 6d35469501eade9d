"""Pumps length-prefixed frames between a socket and an actor's mailbox."""

import struct

import anyio
from anyio.abc import ByteStream
from anyio.streams.buffered import BufferedByteReceiveStream

from outboxd.channels.mailbox import Counterpart
from outboxd.channels.protocol import MAX_FRAME_BYTES, Message, decode, encode
from outboxd.core.errors import ProtocolError

_LENGTH = struct.Struct(">I")


def frame(message: Message) -> bytes:
    """A message as it stands on the wire: four bytes of length, then its body."""
    body = encode(message)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Reads messages off a byte stream, one at a time."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = BufferedByteReceiveStream(stream)

    async def read(self) -> Message | None:
        """The next message, or None when the peer is gone.

        A last frame that was cut short by the peer's death is discarded. Raises ProtocolError on a
        frame that is too long or does not decode.
        """
        try:
            (length,) = _LENGTH.unpack(await self._stream.receive_exactly(_LENGTH.size))
            if length > MAX_FRAME_BYTES:
                raise ProtocolError(f"a frame of {length} bytes exceeds {MAX_FRAME_BYTES} bytes")
            body = await self._stream.receive_exactly(length)
        except (
            anyio.IncompleteRead,
            anyio.EndOfStream,
            anyio.BrokenResourceError,
            anyio.ClosedResourceError,
        ):
            return None
        return decode(body)


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
            try:
                await stream.send(frame(parcel.message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the reader sees the end of the peer and finishes
            finally:
                parcel.carried()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(carry_in)
            tasks.start_soon(carry_out)
    finally:
        actor.close()
