"""What every child does around its actor: welcome, heartbeats, metrics, drain, last word."""

import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import anyio

from outboxd.assembly import Assembled, assemble
from outboxd.channels.bridge import bridge
from outboxd.channels.mailbox import Counterpart, Mailbox, open_mailbox
from outboxd.channels.protocol import Bye, Drain, Heartbeat, Welcome
from outboxd.channels.wire import Wire
from outboxd.core.children import Slot
from outboxd.core.clock import boottime
from outboxd.core.errors import DrainOverrun, HandlerOverran, OutboxdError, ProtocolError
from outboxd.core.exit_codes import ExitCode
from outboxd.core.settings import SupervisorSettings
from outboxd.pacing import running
from outboxd.ports.progress import Progress

log = logging.getLogger(__name__)


def live(name: str, fd: int, told_to_stop: Callable[[], bool]) -> ExitCode:
    """Be the child of the slot `name` until it is drained or its supervisor is gone.

    `told_to_stop` says whether SIGTERM came before the event loop could take it.
    """
    try:
        return anyio.run(_live, Slot.parse(name), fd, told_to_stop)
    except Exception:
        # The last fence, so that a crash is one record of the log like any other.
        log.exception("child crashed; this is a bug in outboxd")
        return ExitCode.UNEXPECTED


async def _live(slot: Slot, fd: int, told_to_stop: Callable[[], bool]) -> ExitCode:
    stream = await Wire.over(socket.socket(fileno=fd))
    mailbox, counterpart = open_mailbox()
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        if told_to_stop():
            return ExitCode.OK
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_carry, stream, counterpart)
            code = await _welcomed(slot, mailbox, counterpart, signals)
            tasks.cancel_scope.cancel()
    mailbox.close()
    return code


async def _carry(stream: Wire, counterpart: Counterpart) -> None:
    try:
        await bridge(stream, counterpart)
    except ProtocolError:
        # The mailbox has ended with the bridge, so the actor winds up as an orphan does.
        log.exception("the supervisor's channel broke")


async def _welcomed(
    slot: Slot,
    mailbox: Mailbox,
    counterpart: Counterpart,
    signals: AsyncIterator[signal.Signals],
) -> ExitCode:
    try:
        welcome = await mailbox.receive()
    except anyio.EndOfStream:
        return ExitCode.ORPHANED
    if not isinstance(welcome, Welcome):
        log.error("the first frame is no welcome", extra={"frame": type(welcome).__name__})
        return ExitCode.UNEXPECTED
    try:
        async with assemble(slot, welcome, mailbox) as assembled:
            return await _accompany(assembled, welcome, mailbox, counterpart, signals)
    except OutboxdError as refusal:
        # Nothing that another try could mend soon, unlike a crash: the supervisor is told why.
        log.error("cannot work", extra={"problem": str(refusal)})
        await mailbox.send_written(Bye(str(refusal)))
        return ExitCode.NEVER_READY


async def _accompany(
    assembled: Assembled,
    welcome: Welcome,
    mailbox: Mailbox,
    counterpart: Counterpart,
    signals: AsyncIterator[signal.Signals],
) -> ExitCode:
    supervisor = welcome.settings.supervisor
    reason = "drained"

    async def drain_on_sigterm() -> None:
        nonlocal reason
        async for _ in signals:
            reason = "drained on SIGTERM"
            patience = supervisor.grace_seconds - supervisor.escalation_seconds
            await counterpart.tell(Drain(boottime() + patience))

    async def beat() -> None:
        await _beat(supervisor, assembled.progress, mailbox)

    async def report() -> None:
        while True:
            await mailbox.send(assembled.snapshot())
            await anyio.sleep(supervisor.metrics_interval_seconds)

    refusal: OutboxdError | None = None
    async with running(drain_on_sigterm, beat, report):
        try:
            await assembled.actor.run()
        except OutboxdError as error:  # carried out of the task group, which would wrap it
            refusal = error
    match refusal:
        case None:
            code = ExitCode.OK
        case DrainOverrun():
            reason, code = str(refusal), ExitCode.DRAIN_DEADLINE
        case HandlerOverran():
            reason, code = str(refusal), ExitCode.HANDLER_TIMEOUT
        case _:
            raise refusal
    await mailbox.send_written(Bye(reason, assembled.snapshot()))
    return code


async def _beat(supervisor: SupervisorSettings, progress: Progress, mailbox: Mailbox) -> None:
    """Heartbeats come from the event loop, so that a loop which is stuck goes silent."""
    interval = supervisor.heartbeat_interval_seconds
    lag = 0.0
    while True:
        await mailbox.send(_heartbeat(progress, lag))
        before = boottime()
        await anyio.sleep(interval)
        lag = max(0.0, boottime() - before - interval)


def _heartbeat(progress: Progress, lag: float) -> Heartbeat:
    return Heartbeat(
        loop_lag_seconds=lag,
        in_flight=progress.in_flight,
        oldest_started_at=progress.oldest_started_at,
        last_receive_at=progress.last_receive_at,
        rss_bytes=_rss_bytes(),
        cpu_seconds=time.process_time(),
        open_fds=_open_fds(),
        threads=threading.active_count(),
        handled=progress.handled,
    )


def _rss_bytes() -> int:
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    # Without /proc there is only the peak, in bytes on macOS (getrusage(2)).
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _open_fds() -> int:
    with suppress(OSError):
        return len(os.listdir("/dev/fd"))
    return 0
