"""Replaces processes that work: when they are due for it, and when an operator says so."""

import logging
from collections.abc import Callable, Sequence

import anyio
from anyio.abc import TaskGroup

from outboxd.core.errors import OutboxdError
from outboxd.supervision.life import Life
from outboxd.supervision.observing import RestartReason
from outboxd.supervision.requests import Request

log = logging.getLogger(__name__)


class UnknownChild(OutboxdError):
    """This daemon has no child of that name."""


class NotReplaced(OutboxdError):
    """The process was ended, and its successor is not ready."""


class RestartRequest(Request[str | OutboxdError]):
    """A restart that was ordered: what was done, or why not."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class Replacements:
    """One process at a time in the whole daemon, reloads included, so that what a replacement
    costs, a second or two of one process, is never paid by several at once."""

    def __init__(self, lives: Callable[[], Sequence[Life]], stopping: Callable[[], bool]) -> None:
        self.turn = anyio.Lock()
        self._lives = lives
        self._stopping = stopping
        self._due: set[str] = set()
        self._waiting: dict[str, RestartRequest] = {}
        self._open: set[RestartRequest] = set()

    def due(self, tasks: TaskGroup, life: Life, number: int, reason: RestartReason) -> None:
        """The incarnation of that number is to be recycled, once it is its turn; told again, this
        changes nothing."""
        if life.name not in self._due:
            self._due.add(life.name)
            tasks.start_soon(self._recycle, life, number, reason)

    async def _recycle(self, life: Life, number: int, reason: RestartReason) -> None:
        try:
            async with self.turn:
                current = life.current
                if current is None or current.address.incarnation != number or life.leaving:
                    return  # it is gone already
                log.info("child is recycled", extra={"child": life.name, "reason": reason.value})
                await life.renew(reason)
        finally:
            self._due.discard(life.name)

    async def restart(self, tasks: TaskGroup, name: str) -> str:
        """Have the process of this child, or those of a whole pool, drained and started anew.

        Orders for what waits for its turn already are one with that. It is carried out whether
        somebody goes on waiting for it or not. Raises UnknownChild, and NotReplaced at the first
        one that is not ready afterwards.
        """
        self._called(name)  # a wrong name does not wait for its turn
        if self._stopping():
            raise _stopped(name)
        request = self._waiting.get(name)
        if request is None:
            request = self._waiting[name] = RestartRequest(name)
            self._open.add(request)
            tasks.start_soon(self._carry_out, request)
        match await request.outcome():
            case OutboxdError() as refusal:
                raise refusal
            case done:
                return done

    def abort(self) -> None:
        """The daemon stops, and that is the answer at once to every order."""
        for request in self._open:
            request.conclude(_stopped(request.name))

    async def _carry_out(self, request: RestartRequest) -> None:
        async with self.turn:
            del self._waiting[request.name]  # who comes now wants one more
            request.conclude(await self._outcome(request.name))
        self._open.discard(request)

    async def _outcome(self, name: str) -> str | OutboxdError:
        try:
            chosen = self._called(name)  # a reload may have had the turn
            for life in chosen:
                await self._restart(life)
        except OutboxdError as refusal:
            return refusal
        # The fence around the supervisor: a bug here costs a restart, not the daemon.
        except Exception:
            log.exception("restart not carried out; this is a bug in outboxd")
            return NotReplaced("a bug in outboxd; its log tells more")
        return ", ".join(life.name for life in chosen) + " restarted"

    def _called(self, name: str) -> Sequence[Life]:
        chosen = [life for life in self._lives() if name in (life.name, _pool_of(life))]
        if not chosen:
            known = ", ".join(life.name for life in self._lives())
            raise UnknownChild(f'there is no child "{name}"; this daemon has {known}')
        return chosen

    async def _restart(self, life: Life) -> None:
        if not self._stopping():  # the extender, too, has work to do in a stop
            log.warning("child is restarted by order", extra={"child": life.name})
            if await life.renew(RestartReason.OPERATOR):
                return
        if self._stopping():
            raise _stopped(life.name)
        raise NotReplaced(f"{life.name} was ended, and is not ready again: {life.last_told}")


def _stopped(name: str) -> NotReplaced:
    return NotReplaced(f"{name} is not started again: outboxd is stopping")


def _pool_of(life: Life) -> str:
    """`consumer:orders` for each process of that pool."""
    return life.name.rpartition("/")[0] or life.name
