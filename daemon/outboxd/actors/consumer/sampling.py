"""Counts the queue and its dead-letter queue now and then."""

import logging

from outboxd.actors.consumer.pool import Pool
from outboxd.core.errors import Unavailable
from outboxd.pacing import pause
from outboxd.ports.queue import Queue

log = logging.getLogger(__name__)


async def sample_depth(pool: Pool, queue: Queue) -> None:
    """Tell the observer of the queue's depth now and then, until stopping."""
    while not pool.stopping.is_set():
        try:
            pool.observer.sampled(await queue.depth())
        except Unavailable as error:
            # The age of the last sample is a metric of its own; receiving is loud enough.
            log.debug("queue depth unknown", extra={"error": str(error)})
        await pause(pool.stopping, pool.timing.sample_seconds)
