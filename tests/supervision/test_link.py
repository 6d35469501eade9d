"""The supervisor's end of a channel: bursts pass, and only a child that does not read overflows."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from outboxd.channels.bridge import FrameReader, frame
from outboxd.channels.protocol import Address, Message, Settled
from outboxd.channels.wire import Wire
from outboxd.supervision.link import QUEUED_FRAMES, Link

FRAMES = 6000
"""What six pools may have written while the supervisor stood still."""


POOL = Address("consumer:work/1", 1)


class Overflow(Exception):
    """A child was told that it does not read."""


def overflowed(why: str) -> None:
    raise Overflow(why)


@asynccontextmanager
async def linked(name: str) -> AsyncIterator[tuple[Link, Wire]]:
    """A link, and the child's end of its channel."""
    ours, theirs = socket.socketpair()
    async with (
        await Wire.over(ours) as stream,
        await Wire.over(theirs) as child,
    ):
        link = Link(Address(name, 1), stream, lambda: None, overflowed)
        yield link, child
        link.close()


async def read(child: Wire, frames: int) -> list[Message]:
    reader = FrameReader(child)
    return [message for _ in range(frames) if (message := await reader.read()) is not None]


async def test_what_pools_wrote_during_a_stall_reaches_an_extender_that_reads() -> None:
    pools = 6
    settled = [Settled(POOL, (number,)) for number in range(FRAMES // pools)]
    burst = b"".join(map(frame, settled))
    async with linked("extender") as (extender, extenders_end), anyio.create_task_group() as tasks:
        tasks.start_soon(extender.write_frames)
        for number in range(pools):
            tasks.start_soon(_read_a_burst, f"pool{number}", burst, extender)

        with anyio.fail_after(30):
            arrived = await read(extenders_end, FRAMES)
        tasks.cancel_scope.cancel()

    assert sorted(map(str, arrived)) == sorted(map(str, settled * pools))


async def _read_a_burst(name: str, burst: bytes, extender: Link) -> None:
    async with linked(name) as (pool, pools_end), anyio.create_task_group() as tasks:
        tasks.start_soon(pool.read_frames, extender.tell)
        await pools_end.send(burst)
        await pools_end.aclose()


async def test_frames_keep_their_order() -> None:
    async with linked("extender") as (link, child), anyio.create_task_group() as tasks:
        for number in range(QUEUED_FRAMES):
            link.tell(Settled(POOL, (number,)))
        tasks.start_soon(link.write_frames)

        with anyio.fail_after(30):
            arrived = await read(child, QUEUED_FRAMES)
        tasks.cancel_scope.cancel()

    assert arrived == [Settled(POOL, (number,)) for number in range(QUEUED_FRAMES)]


async def test_a_child_that_does_not_read_overflows_once_its_queue_is_full() -> None:
    async with linked("extender") as (link, _):
        told = 0
        try:
            while told <= QUEUED_FRAMES:
                link.tell(Settled(POOL, (told,)))
                told += 1
        except Overflow:
            pass

    assert told == QUEUED_FRAMES
