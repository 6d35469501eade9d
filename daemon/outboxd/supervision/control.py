"""Takes an operator's orders over the control socket."""

import logging
from contextlib import suppress
from typing import Protocol, assert_never

import anyio
from anyio.abc import SocketListener, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from outboxd.core.errors import OutboxdError
from outboxd.supervision.control_socket import ControlSocket
from outboxd.supervision.orders import (
    MAX_LINE_BYTES,
    Answer,
    DumpStacks,
    Order,
    PauseQueue,
    ReloadConfiguration,
    RestartChild,
    ResumeQueue,
    read_order,
    write_line,
)

log = logging.getLogger(__name__)

CONNECTION_SECONDS = 5.0
"""Telling the order, and taking the answer, take no longer; a slower peer is hung up on. Carrying
an order out may take longer: a reload does."""

MAX_CONNECTIONS = 16
"""That have not said their order yet. Those whose order is being carried out do not count: a dozen
reloads that wait for long handlers must not keep a pause from being heard."""

AFTER_FAILED_ACCEPT_SECONDS = 1.0

_TOO_LONG = Answer(False, f"the order is longer than {MAX_LINE_BYTES} bytes")


class Controlled(Protocol):
    """What can be ordered; a refusal is an OutboxdError with a text for the operator."""

    def pause(self, queue: str) -> None:
        """Have the pools of this queue stop receiving."""

    def resume(self, queue: str) -> None:
        """Have the pools of this queue receive again."""

    async def reload(self, *, everything: bool) -> str:
        """Use the configuration as it is now; what was done, once it is."""

    async def restart(self, child: str) -> str:
        """Replace the process of this child, or those of a pool; what was done, once it is."""

    def dump(self) -> str:
        """Have all processes write down their stacks; which."""


async def serve_control(control: ControlSocket, controlled: Controlled) -> None:
    """Take orders until cancelled; nothing that a peer does ends it."""
    try:
        listener = await SocketListener.from_socket(control.socket)
        room = anyio.CapacityLimiter(MAX_CONNECTIONS)

        async def answer(stream: SocketStream) -> None:
            async with stream:
                async with room:
                    line = await _heard(stream)
                if line is not None:
                    await _answer(stream, line, controlled)

        async with listener, anyio.create_task_group() as tasks:
            while True:
                # Not accepted before there is room: who waits costs the kernel a little, us none.
                async with room:
                    stream = await _accept(listener)
                tasks.start_soon(answer, stream)
    finally:
        control.close()


async def _accept(listener: SocketListener) -> SocketStream:
    while True:
        try:
            return await listener.accept()
        except anyio.BrokenResourceError as error:  # no descriptor left, for one
            log.exception("control connection not accepted", exc_info=error)
            await anyio.sleep(AFTER_FAILED_ACCEPT_SECONDS)


async def _answer(stream: SocketStream, line: bytes, controlled: Controlled) -> None:
    answer = await _carry_out(line, controlled) if line else _TOO_LONG
    # A peer that has gone has its order carried out all the same.
    with (
        suppress(anyio.BrokenResourceError, anyio.ClosedResourceError),
        anyio.move_on_after(CONNECTION_SECONDS),
    ):
        await stream.send(write_line(answer))


async def _heard(stream: SocketStream) -> bytes | None:
    """The line of the order without its end, empty if it is too long, None if there is none."""
    with (
        suppress(anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError),
        anyio.move_on_after(CONNECTION_SECONDS),
    ):
        return await _line(stream)
    return None


async def _line(stream: SocketStream) -> bytes:
    try:
        line = await BufferedByteReceiveStream(stream).receive_until(b"\n", MAX_LINE_BYTES)
    except anyio.DelimiterNotFound:
        return b""
    # The limit is only looked at between two reads, and one read may bring more. An empty line is
    # no order, which the decoder says better than we do.
    return (line or b" ") if len(line) < MAX_LINE_BYTES else b""


async def _carry_out(line: bytes, controlled: Controlled) -> Answer:
    try:
        return Answer(True, done=await _give(read_order(line), controlled))
    except (OutboxdError, ValueError) as refusal:
        return Answer(False, str(refusal))
    # The fence around the supervisor: a bug here costs an answer, not the daemon.
    except Exception:
        log.exception("order not carried out; this is a bug in outboxd")
        return Answer(False, "a bug in outboxd; its log tells more")


async def _give(order: Order, controlled: Controlled) -> str:
    match order:
        case PauseQueue(queue=queue):
            controlled.pause(queue)
            return ""
        case ResumeQueue(queue=queue):
            controlled.resume(queue)
            return ""
        case ReloadConfiguration(everything=everything):
            return await controlled.reload(everything=everything)
        case RestartChild(child=child):
            return await controlled.restart(child)
        case DumpStacks():
            return controlled.dump()
        case _:
            assert_never(order)
