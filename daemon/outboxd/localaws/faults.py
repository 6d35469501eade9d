"""The place where a scripted fault takes hold of a call; no fault is scripted yet.

Every call of a service passes `Faults.for_call` once. A fault that claims the call decides what the
client sees: it may answer without proceeding (throttle, AccessDenied), proceed later (slow, hang),
proceed and answer something else (a swallowed delete, a failed entry), or return `Hangup` after the
server has done the work.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from outboxd.localaws.exchange import Hangup, Outcome, Pending, Reply
from outboxd.localaws.http1 import Answer, Request

log = logging.getLogger(__name__)


class Target(NamedTuple):
    """What a fault is addressed to; `queue` is None for operations that are not about one."""

    service: str
    operation: str
    region: str
    queue: str | None


Proceed = Callable[[], Awaitable[Outcome]]


class Fault(Protocol):
    """What happens instead of, before or after an operation."""

    async def __call__(self, request: Request, proceed: Proceed) -> Outcome:
        """`proceed()` runs the operation and returns its outcome; call it at most once."""


class Faults(Protocol):
    """The script."""

    @property
    def active(self) -> bool:
        """Whether any call could be hit; False keeps the look-up off the ordinary path."""

    def for_call(self, target: Target) -> Fault | None:
        """The fault that claims this call, counting it as used."""


class NoFaults:
    """The empty script."""

    active = False

    def for_call(self, target: Target) -> Fault | None:
        return None


def under(fault: Fault, request: Request, proceed: Callable[[], Reply]) -> Pending:
    """Run a call in the hands of a fault. A client that hangs up ends the fault with it."""

    async def run() -> None:
        try:
            pending.finish(await fault(request, lambda: _outcome(proceed())))
        except Exception:
            log.exception("fault failed")
            pending.finish(Hangup())

    task = asyncio.ensure_future(run())

    def abandon() -> None:
        task.cancel()

    pending = Pending(abandon)
    return pending


async def _outcome(reply: Reply) -> Outcome:
    if isinstance(reply, Answer):
        return reply
    arrived: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def arrive(outcome: Outcome) -> None:
        if not arrived.done():
            arrived.set_result(outcome)

    reply.then(arrive)
    try:
        return await arrived
    finally:
        # Cancelled because the client is gone: a long poll must not go on for nobody.
        reply.abandon()
