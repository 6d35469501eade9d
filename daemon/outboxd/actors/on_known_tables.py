"""Lets an actor work only on tables of the version that it was written for."""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio

from outboxd.core.errors import OutboxdError, Unavailable
from outboxd.core.retry import Backoff

log = logging.getLogger(__name__)

RETRIES = Backoff(first_seconds=1.0, cap_seconds=10.0)


class Actor(Protocol):
    """Whatever a child does."""

    async def run(self) -> None: ...


class OnKnownTables:
    """Runs another actor, and ends it with the check's error when the tables are unknown ones.

    A database that does not answer must not keep a child from starting, or its outage would use up
    the start limits: the actor then waits for the database by itself, and the check with it.
    """

    def __init__(self, actor: Actor, check: Callable[[], Awaitable[None]]) -> None:
        """`check` raises Unavailable while it cannot tell, and another OutboxdError to refuse."""
        self._actor = actor
        self._check = check
        self._refusal: OutboxdError | None = None
        self._told = False

    async def run(self) -> None:
        """As long as the other actor runs. Raises what that raises, and the check's refusal."""
        if await self._known():
            await self._actor.run()
            return
        ended: OutboxdError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks.cancel_scope)
            try:
                await self._actor.run()
            except OutboxdError as error:  # carried out of the task group, which would wrap it
                ended = error
            tasks.cancel_scope.cancel()
        if self._refusal is not None:
            raise self._refusal
        if ended is not None:
            raise ended

    async def _watch(self, running: anyio.CancelScope) -> None:
        attempt = 1
        try:
            await anyio.sleep(RETRIES.delay(attempt))
            while not await self._known():
                attempt += 1
                await anyio.sleep(RETRIES.delay(attempt))
        except OutboxdError as refusal:
            self._refusal = refusal
            running.cancel()

    async def _known(self) -> bool:
        try:
            await self._check()
        except Unavailable as error:
            # Once: the actor itself tells of the outage and of its end.
            if not self._told:
                log.warning("the tables' version is not known yet", extra={"error": str(error)})
            self._told = True
            return False
        return True
