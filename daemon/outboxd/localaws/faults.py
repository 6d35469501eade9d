"""The places where a fault takes hold: of a call as a whole, and of what a receive delivers.

Every call of a service passes `Faults.for_call` once. A fault that claims the call decides what the
client sees: it may answer without proceeding (throttle, AccessDenied), proceed later (slow, hang),
proceed with a changed request and change the answer (a failed entry), or return `Hangup` after the
server has done the work. `script/` is the script that users write; this is all it needs to know.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from outboxd.localaws.errors import AwsError
from outboxd.localaws.exchange import Hangup, Outcome, Pending, Reply
from outboxd.localaws.http1 import Answer, Request

log = logging.getLogger(__name__)


class Target(NamedTuple):
    """What a fault is addressed to.

    `queue` is the name of the queue, topic or event bus; None for operations that are not about one
    of them.
    """

    service: str
    operation: str
    region: str
    queue: str | None


class Proceed(Protocol):
    """The operation that a fault holds back."""

    def __call__(self, changed: Request | None = None) -> Awaitable[Outcome]:
        """Run it, as asked for or as changed, and return its outcome; call it at most once."""


class Fault(Protocol):
    """What happens instead of, before or after an operation."""

    async def __call__(self, request: Request, proceed: Proceed) -> Outcome:
        """The outcome that the client is to see. Raises AwsError to have the call refused."""


class Faults(Protocol):
    """Faults of calls."""

    @property
    def active(self) -> bool:
        """Whether any call could be hit; False keeps the look-up off the ordinary path."""

    def for_call(self, target: Target, request: Request) -> Fault | None:
        """The fault that claims this call, counting it as used."""


class DeliveryFaults(Protocol):
    """Faults of deliveries. They are asked when a message is about to be delivered, not when the
    receive arrives: most of the time a consumer's long poll is under way already."""

    @property
    def active(self) -> bool:
        """Whether any delivery could be hit."""

    def reorders(self, target: Target) -> bool:
        """Whether this receive is to deliver the newest messages first, counting it as used."""

    def duplicates(self, target: Target, body: str) -> bool:
        """Whether this message is to be delivered once more, counting it as used."""


class NoFaults:
    """The empty script."""

    active = False

    def for_call(self, target: Target, request: Request) -> Fault | None:
        return None

    def reorders(self, target: Target) -> bool:
        return False

    def duplicates(self, target: Target, body: str) -> bool:
        return False


def passed(
    faults: Faults,
    target: Target,
    request: Request,
    perform: Callable[[Request], Reply],
    refuse: Callable[[AwsError], Answer],
) -> Reply:
    """Run a call, in the hands of a fault if one claims it; `perform` is given what the fault makes
    of the request."""
    if faults.active:
        fault = faults.for_call(target, request)
        if fault is not None:
            return under(fault, request, perform, refuse)
    return perform(request)


def under(
    fault: Fault,
    request: Request,
    perform: Callable[[Request], Reply],
    refuse: Callable[[AwsError], Answer],
) -> Pending:
    """Run a call in the hands of a fault. A client that hangs up ends the fault with it."""

    async def proceed(changed: Request | None = None) -> Outcome:
        return await _outcome(perform(request if changed is None else changed))

    async def run() -> None:
        try:
            pending.finish(await fault(request, proceed))
        except AwsError as refusal:
            pending.finish(refuse(refusal))
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
