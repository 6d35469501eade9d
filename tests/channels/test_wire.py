"""The socket between two processes: nothing is torn, lost or waited for in vain."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from outboxd.channels.wire import HIGH_WATER_BYTES, Wire

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def wires() -> AsyncIterator[tuple[Wire, Wire]]:
    near, far = socket.socketpair()
    async with await Wire.over(near) as one, await Wire.over(far) as other:
        yield one, other


async def take(wire: Wire, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await wire.receive()
    return data


async def test_what_is_sent_arrives_in_order() -> None:
    async with wires() as (one, other):
        await one.send(b"abc")
        await one.send(b"def")
        assert await take(other, 6) == b"abcdef"
        await other.send(b"x")
        assert await one.receive() == b"x"


async def test_no_more_is_given_than_is_asked_for() -> None:
    async with wires() as (one, other):
        await one.send(b"abcdef")
        assert [await other.receive(4), await other.receive(4)] == [b"abcd", b"ef"]


async def test_a_hang_up_is_the_end_after_what_was_sent_before() -> None:
    async with wires() as (one, other):
        await one.send(b"last words")
        await one.aclose()
        assert await take(other, 10) == b"last words"
        with pytest.raises(anyio.EndOfStream):
            await other.receive()


async def send_now_and_then(wire: Wire) -> None:
    for _ in range(10):
        await wire.send(b"x")
        await anyio.lowlevel.checkpoint()


async def test_a_peer_that_is_gone_is_an_error_for_who_sends() -> None:
    async with wires() as (one, other):
        await other.aclose()
        with pytest.raises(anyio.EndOfStream):
            await one.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await send_now_and_then(one)


async def test_a_peer_that_hangs_up_ends_a_send_that_waits_for_room() -> None:
    async with wires() as (one, other), anyio.create_task_group() as tasks:

        async def hang_up() -> None:
            await anyio.wait_all_tasks_blocked()
            await other.aclose()

        tasks.start_soon(hang_up)
        with pytest.raises(anyio.BrokenResourceError), anyio.fail_after(10):
            await one.send(b"x" * (HIGH_WATER_BYTES * 4))


async def test_sent_means_taken_by_the_kernel() -> None:
    """A Hold has to outlive its sender: what waits in the sender's memory would not."""
    async with wires() as (one, other):
        with anyio.move_on_after(0.2) as scope:
            await one.send(b"x" * (HIGH_WATER_BYTES * 4))  # more than its reader takes unasked
        assert scope.cancelled_caught
        assert len(await take(other, HIGH_WATER_BYTES * 4)) == HIGH_WATER_BYTES * 4


async def test_a_reader_that_is_behind_is_not_sent_to_without_end() -> None:
    async with wires() as (one, other):
        with anyio.move_on_after(0.2):
            while True:
                await one.send(b"x" * 65536)
        waiting = 0
        with anyio.move_on_after(0.2):
            while True:
                waiting += len(await other.receive(1 << 30))
                break
        assert HIGH_WATER_BYTES < waiting < 2 * HIGH_WATER_BYTES


async def test_a_receive_that_is_cancelled_loses_nothing() -> None:
    async with wires() as (one, other):
        with anyio.move_on_after(0.01):
            await other.receive()
        await one.send(b"abc")
        assert await other.receive() == b"abc"
