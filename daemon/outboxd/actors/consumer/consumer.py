"""One process of one consumer pool: wires the stages, hears the mailbox, and winds up."""

import logging
import math
import random
import time
from collections.abc import Callable

import anyio

from outboxd.actors.consumer.database_watch import DatabaseWatch
from outboxd.actors.consumer.gates import Obstacle
from outboxd.actors.consumer.hand import Item
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.processing import Processor
from outboxd.actors.consumer.receiving import Receiver
from outboxd.actors.consumer.sampling import sample_depth
from outboxd.actors.consumer.settling import Settler
from outboxd.actors.consumer.timing import Timing
from outboxd.channels.mailbox import Mailbox
from outboxd.channels.protocol import (
    Address,
    Drain,
    ExtenderDown,
    ExtenderUp,
    Forgotten,
    LeaseLost,
    Message,
    Pause,
    Ready,
    Resume,
)
from outboxd.core.clock import boottime
from outboxd.core.errors import DrainOverrun
from outboxd.core.retry import Dice
from outboxd.core.settings import QueueSettings
from outboxd.ports.consumer_observer import ConsumerObserver
from outboxd.ports.handling import HandlerRunner
from outboxd.ports.inbox import Inbox
from outboxd.ports.progress import Progress
from outboxd.ports.queue import Queue

log = logging.getLogger(__name__)


class Consumer:
    """Runs every message's handlers at least once, and deletes it only when all of them have
    committed or have been dead-lettered."""

    def __init__(
        self,
        name: str,
        settings: QueueSettings,
        *,
        address: Address,
        mailbox: Mailbox,
        queue: Queue,
        runner: HandlerRunner,
        inbox: Inbox,
        progress: Progress,
        observer: ConsumerObserver,
        timing: Timing | None = None,
        clock: Callable[[], float] = boottime,
        wall_clock: Callable[[], float] = time.time,
        dice: Dice = random.random,
    ) -> None:
        pool = Pool(
            name=name,
            settings=settings,
            observer=observer,
            progress=progress,
            timing=timing or Timing(),
            clock=clock,
            wall_clock=wall_clock,
            dice=dice,
        )
        self._pool = pool
        self._address = address
        self._mailbox = mailbox
        self._queue = queue
        self._working = anyio.CancelScope()
        self._deadline = math.inf
        self._cut_short = 0
        self._leases = Leases(pool, address, mailbox)
        self._watch = DatabaseWatch(pool, inbox)
        self._settler = Settler(pool, queue, self._leases)
        self._work, self._items = anyio.create_memory_object_stream[Item](math.inf)
        self._receiver = Receiver(pool, queue, self._leases, self._settler, self._work)
        self._processor = Processor(pool, runner, inbox, self._leases, self._settler, self._watch)

    async def run(self) -> None:
        """Consume until told to drain, or until the supervisor is gone, and wind up.

        Raises DrainOverrun, at the very end, when handlers were not done in their time.
        """
        async with anyio.create_task_group() as background:
            background.start_soon(self._listen)
            background.start_soon(self._tell_ready)
            await background.start(self._settler.run)
            background.start_soon(self._watch.run)
            if self._address.name.endswith("/1"):  # the others would count the same messages
                background.start_soon(sample_depth, self._pool, self._queue)
            await self._watch.look()
            await self._serve()
            await self._wind_up()
            background.cancel_scope.cancel()
        if self._cut_short:
            raise DrainOverrun(f"{self._cut_short} handlers did not end in the time of the drain")

    async def _serve(self) -> None:
        """Until all work in hand has ended, or the drain's time for it is over."""
        with self._working, self._work, self._items:
            async with anyio.create_task_group() as workers:
                for _ in range(self._pool.settings.concurrency):
                    workers.start_soon(self._processor.work, self._items)
                await self._receiver.run()
                self._work.close()

    async def _wind_up(self) -> None:
        interrupted = self._pool.hand.interrupted()
        running = self._pool.hand.abandon()
        self._cut_short = len(interrupted) + len(running)
        if interrupted or running:
            log.warning(
                "handlers did not end in time",
                extra={
                    "queue": self._pool.name,
                    "interrupted": len(interrupted),
                    "running": len(running),
                },
            )
        with anyio.move_on_after(self._seconds_left(self._pool.timing.last_word_seconds)):
            self._settler.release(interrupted)
            await self._pool.hand.emptied()
        if self._pool.hand.size:
            log.error(
                "messages left unsettled",
                extra={"queue": self._pool.name, "count": self._pool.hand.size},
            )

    async def _tell_ready(self) -> None:
        await self._receiver.first_poll.wait()
        await self._mailbox.send(Ready())

    async def _listen(self) -> None:
        async for message in self._mailbox:
            self._hear(message)
        # Nobody is left to hear a Forget, or to give us more time.
        self._leases.orphan()
        self._drain(min(self._deadline, self._pool.clock() + self._pool.timing.orphan_seconds))

    def _hear(self, message: Message) -> None:
        match message:
            case Drain(deadline=deadline):
                self._drain(min(self._deadline, deadline))
            case ExtenderUp():
                self._leases.extender_up()
            case ExtenderDown():
                self._leases.extender_down()
            case Forgotten():
                self._leases.heard(message)
            case LeaseLost(tokens=tokens):
                self._pool.hand.lose(tokens)
            case Pause(queue=queue) if queue == self._pool.name:
                self._pool.gates.close(Obstacle.PAUSED)
            case Resume(queue=queue) if queue == self._pool.name:
                self._pool.gates.clear(Obstacle.PAUSED)
            case _:
                log.warning("unexpected message", extra={"kind": type(message).__name__})

    def _drain(self, deadline: float) -> None:
        self._deadline = deadline
        self._pool.stopping.set()
        self._working.deadline = anyio.current_time() + self._seconds_left(
            self._pool.timing.settle_seconds
        )
        self._pool.change.notify()

    def _seconds_left(self, kept: float) -> float:
        """Until `kept` seconds before the drain's deadline."""
        return max(0.0, self._deadline - self._pool.clock() - kept)
