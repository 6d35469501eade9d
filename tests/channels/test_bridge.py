import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from outboxd.channels.bridge import FrameReader, bridge, frame
from outboxd.channels.mailbox import Mailbox, open_mailbox
from outboxd.channels.protocol import MAX_FRAME_BYTES, Bye, Drain, ExtenderUp, Ready
from outboxd.channels.wire import Wire
from outboxd.core.errors import ProtocolError


@asynccontextmanager
async def a_bridged_actor() -> AsyncIterator[tuple[Mailbox, Wire]]:
    """An actor's mailbox, and the far end of the socket that it is bridged to."""
    near, far = socket.socketpair()
    mailbox, counterpart = open_mailbox()
    async with (
        await Wire.over(near) as stream,
        await Wire.over(far) as peer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(bridge, stream, counterpart)
        yield mailbox, peer
        tasks.cancel_scope.cancel()
    mailbox.close()


async def test_messages_cross_the_socket_both_ways() -> None:
    async with a_bridged_actor() as (mailbox, peer):
        await peer.send(frame(ExtenderUp()) + frame(Drain(5.0)))
        await mailbox.send_written(Ready())

        assert [await mailbox.receive(), await mailbox.receive()] == [ExtenderUp(), Drain(5.0)]
        assert await FrameReader(peer).read() == Ready()


async def test_a_frame_that_arrives_in_pieces_is_one_message() -> None:
    async with a_bridged_actor() as (mailbox, peer):
        for byte in frame(Drain(7.0)):
            await peer.send(bytes([byte]))

        assert await mailbox.receive() == Drain(7.0)


async def test_the_actor_sees_the_end_when_its_peer_dies() -> None:
    async with a_bridged_actor() as (mailbox, peer):
        await peer.send(frame(ExtenderUp()))
        await peer.aclose()

        assert await mailbox.receive() == ExtenderUp()
        with pytest.raises(anyio.EndOfStream):
            await mailbox.receive()
        await mailbox.send_written(Bye("nobody listens"))


async def test_a_last_frame_cut_short_by_death_is_discarded() -> None:
    near, far = socket.socketpair()
    async with await Wire.over(near) as stream:
        far.sendall(frame(Drain(1.0)) + frame(Drain(2.0))[:-1])
        far.close()
        reader = FrameReader(stream)

        assert await reader.read() == Drain(1.0)
        assert await reader.read() is None


@pytest.mark.parametrize(
    "garbage",
    [struct.pack(">I", 4) + b"\xc1\xc1\xc1\xc1", struct.pack(">I", MAX_FRAME_BYTES + 1)],
    ids=["undecodable", "too long"],
)
async def test_garbage_on_the_wire_is_a_protocol_error(garbage: bytes) -> None:
    near, far = socket.socketpair()
    with far:
        async with await Wire.over(near) as stream:
            far.sendall(garbage)

            with pytest.raises(ProtocolError):
                await FrameReader(stream).read()
