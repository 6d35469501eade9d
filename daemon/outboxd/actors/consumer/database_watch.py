"""Keeps a pool from receiving while its database is away."""

import logging

import anyio

from outboxd.actors.consumer.gates import Obstacle
from outboxd.actors.consumer.pool import Pool
from outboxd.core.errors import Unavailable
from outboxd.ports.inbox import Inbox

log = logging.getLogger(__name__)


class DatabaseWatch:
    """Closes the gate when told of an outage, and opens it when the database answers."""

    def __init__(self, pool: Pool, inbox: Inbox) -> None:
        self._pool = pool
        self._inbox = inbox
        self._outage = anyio.Event()
        self._failures = 0

    def lost(self, error: str) -> None:
        """The database could not be used."""
        if Obstacle.DATABASE not in self._pool.gates.obstacles:
            log.error(
                "database away; receiving stops until it answers",
                extra={"queue": self._pool.name, "error": error},
            )
        self._pool.gates.close(Obstacle.DATABASE)
        self._outage.set()

    def used(self) -> None:
        """A handler's share of work got through, so the next outage is a new one.

        The answer to a ping does not prove that much: a disk may be full.
        """
        self._failures = 0

    async def look(self) -> None:
        """Ask once; the gate is closed if there is no answer."""
        try:
            await self._inbox.ping()
        except Unavailable as error:
            self.lost(str(error))

    async def run(self) -> None:
        """Probe through each outage, for ever."""
        while True:
            await self._outage.wait()
            self._failures += 1
            await anyio.sleep(
                self._pool.timing.database_backoff.delay(self._failures, self._pool.dice)
            )
            self._outage = anyio.Event()
            await self.look()
            if not self._outage.is_set():
                log.info("database answers; receiving goes on", extra={"queue": self._pool.name})
                self._pool.gates.clear(Obstacle.DATABASE)
