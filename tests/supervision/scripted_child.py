"""A child for the supervisor's tests: how it behaves is the queue of its slot's name.

Started as `python -m scripted_child NAME --fd N --supervisor PID`, as a real child is.
"""

import os
import signal
import socket
import sys
import time

import anyio

from outboxd.channels.bridge import FrameReader, frame
from outboxd.channels.protocol import (
    Alone,
    Bye,
    Drain,
    Forget,
    Heartbeat,
    Hold,
    Lease,
    OwnerGone,
    Pause,
    Ready,
    Settled,
    SuspectsRecorded,
    Welcome,
)
from outboxd.channels.wire import Wire
from outboxd.core.children import Slot
from outboxd.core.exit_codes import ExitCode

UNLUCKY = 13
"""A concurrency with which no child becomes ready."""

HEARTBEAT = Heartbeat(0.0, 0, None, None, 1, 0.0, 3, 1)
HEARTBEATS = {
    "heard_long_ago": Heartbeat(0.0, 0, None, 1000.0, 1, 0.0, 3, 1),
    "heard_long_ago_but_busy": Heartbeat(0.0, 2, 1000.0, 1000.0, 1, 0.0, 3, 1),
    "stuck": Heartbeat(0.0, 1, 1000.0, None, 1, 0.0, 3, 1),
    "hard_working": Heartbeat(0.0, 0, None, None, 1, 0.0, 3, 1, handled=1000),
}


async def main(name: str, fd: int) -> int:
    slot = Slot.parse(name)
    behaviour = slot.queue or slot.kind.value
    stream = await Wire.over(socket.socket(fileno=fd))
    reader = FrameReader(stream)
    welcome = await reader.read()
    assert isinstance(welcome, Welcome)
    queue = welcome.settings.queues.get(slot.queue)
    if queue is not None and queue.concurrency == UNLUCKY:
        await stream.send(frame(Bye("bad luck")))
        return 3
    match behaviour:
        case "never_ready":
            return 1
        case "fails_twice" if welcome.address.incarnation in (2, 3):
            return 1
        case "dies_of_work" if welcome.address.incarnation in (2, 3):
            os.kill(os.getpid(), signal.SIGKILL)
        case "late":
            await anyio.sleep(4)
        case "slow_start":
            await anyio.sleep(60)
        case "refuses":
            await stream.send(frame(Bye("no tables")))
            return 3
        case "garbage":
            await stream.send(b"\x00\x00\x00\x02\xc1\xc1")
            await anyio.sleep(60)
        case _:
            pass
    if welcome.suspects and behaviour != "dies_of_work_in_an_outage":
        await stream.send(frame(SuspectsRecorded()))
    await stream.send(frame(Ready()))
    match behaviour:
        case "crashes":
            return 7
        case "silent":
            await anyio.sleep(60)
        case "holds_and_crashes":
            lease = Lease(1, slot.queue, "m-1", "handle", 0.0, 300, 900.0)
            await stream.send(frame(Hold(welcome.address, (lease,))))
            await stream.send(frame(Forget(welcome.address, (1,), 5)))
            if welcome.address.incarnation == 1:
                os.kill(os.getpid(), signal.SIGKILL)
        case "dies_of_work" | "dies_of_work_alone" | "dies_of_work_in_an_outage" if (
            welcome.address.incarnation == 1
        ):
            await work_on_three(stream, welcome, alone=behaviour.endswith("alone"))
            os.kill(os.getpid(), signal.SIGKILL)
        case "works_and_is_deaf":
            await work_on_three(stream, welcome, alone=False)
            behaviour = "deaf"
        case "stuck":
            await work_on_three(stream, welcome, alone=False)
        case "retires" if welcome.address.incarnation <= 9:
            await work_on_three(stream, welcome, alone=False)
            await stream.send(frame(Bye("a handler was over its time")))
            return ExitCode.HANDLER_TIMEOUT
        case "retires_at_the_drain":
            while not isinstance(await reader.read(), Drain):
                pass
            await stream.send(frame(Bye("a handler was over its time")))
            return ExitCode.HANDLER_TIMEOUT
        case "ends_like_a_timeout":
            return ExitCode.HANDLER_TIMEOUT
        case _:
            pass
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat, stream, HEARTBEATS.get(behaviour, HEARTBEAT))
        while (message := await reader.read()) is not None:
            match message:
                case Drain() if behaviour == "crashes_at_the_drain":
                    os._exit(7)
                case Drain() if behaviour == "slow_to_drain":
                    await anyio.sleep(0.5)
                    break
                case Drain() if behaviour == "deaf":
                    time.sleep(60)  # noqa: ASYNC251  a loop that is stuck is the point
                case Drain():
                    tasks.cancel_scope.cancel()
                    break
                case Pause():  # the outage that it is in is over
                    await stream.send(frame(SuspectsRecorded()))
                case OwnerGone(owner=owner):
                    await stream.send(frame(Settled(owner, (1, 2, 3))))
                case _:
                    pass
        tasks.cancel_scope.cancel()
    await stream.send(frame(Bye("drained")))
    return 0


async def work_on_three(stream: Wire, welcome: Welcome, *, alone: bool) -> None:
    """Hold m-1 to m-3; the handlers of m-1 have ended, and m-3 may be the only one that runs."""
    leases = tuple(
        Lease(number, "work", f"m-{number}", "handle", 0.0, 300, 900.0) for number in (1, 2, 3)
    )
    await stream.send(frame(Hold(welcome.address, leases)))
    await stream.send(frame(Forget(welcome.address, (1,), 5)))
    if alone:
        await stream.send(frame(Alone(welcome.address, 3)))


async def beat(stream: Wire, heartbeat: Heartbeat) -> None:
    while True:
        await stream.send(frame(heartbeat))
        await anyio.sleep(0.2)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    sys.exit(anyio.run(main, sys.argv[1], int(sys.argv[3])))
