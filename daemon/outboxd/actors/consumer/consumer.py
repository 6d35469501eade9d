"""One process of one consumer pool: wires the stages, hears the mailbox, and winds up."""

import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import anyio

from outboxd.actors.consumer.arrival import Arrivals
from outboxd.actors.consumer.batches import BatchServer
from outboxd.actors.consumer.database_watch import DatabaseWatch
from outboxd.actors.consumer.distribution import Distributor
from outboxd.actors.consumer.gates import Obstacle
from outboxd.actors.consumer.leases import Leases
from outboxd.actors.consumer.lines import Lines, LineServer
from outboxd.actors.consumer.pool import Pool
from outboxd.actors.consumer.processing import Processor
from outboxd.actors.consumer.receiving import Receiver
from outboxd.actors.consumer.retirement import Retirement
from outboxd.actors.consumer.running import Running
from outboxd.actors.consumer.sampling import sample_depth
from outboxd.actors.consumer.settling import Settler
from outboxd.actors.consumer.solitude import Solitude
from outboxd.actors.consumer.suspecting import Suspecting
from outboxd.actors.consumer.timing import Timing
from outboxd.actors.consumer.verdicts import Verdicts
from outboxd.actors.consumer.waiting_work import WaitingWork
from outboxd.actors.consumer.work import Work, Worker
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
    Suspect,
)
from outboxd.core.clock import boottime
from outboxd.core.errors import DrainOverrun, HandlerOverran
from outboxd.core.retry import Dice
from outboxd.core.settings import QueueSettings
from outboxd.ports.consumer_observer import ConsumerObserver
from outboxd.ports.handling import HandlerRunner
from outboxd.ports.inbox import Inbox
from outboxd.ports.progress import Progress
from outboxd.ports.queue import Queue
from outboxd.ports.suspects import Suspects

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
        suspects: Suspects,
        progress: Progress,
        observer: ConsumerObserver,
        inherited: Sequence[Suspect] = (),
        processes: int = 1,
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
        self._draining = False
        self._leases = leases = Leases(pool, address, mailbox)
        self._watch = DatabaseWatch(pool, inbox)
        self._settler = settler = Settler(pool, queue, leases)
        self._suspecting = Suspecting(pool, suspects, inherited, self._watch, mailbox)
        verdicts = Verdicts(pool, inbox, self._watch)
        running = Running(pool, runner)
        self._retirement = Retirement(pool, running, inbox, settler, verdicts)
        processor = Processor(pool, running, inbox, leases, settler, self._suspecting, verdicts)
        self._work = WaitingWork[Work]()
        lines = Lines()
        self._distributor = Distributor(pool, lines, settler, self._work)
        self._worker = Worker(
            processor,
            settler,
            LineServer(pool, lines, processor, settler),
            BatchServer(pool, running, inbox, settler, verdicts, self._distributor.put),
        )
        self._solitude = Solitude(pool, self._worker)
        arrivals = Arrivals(
            pool,
            leases,
            settler,
            self._suspecting,
            verdicts,
            self._distributor,
            self._solitude,
        )
        self._receiver = Receiver(pool, queue, arrivals, processes)

    async def run(self) -> None:
        """Consume until told to drain, or until the supervisor is gone, and wind up.

        Raises, at the very end, HandlerOverran when a handler that cannot be interrupted is over
        its time, DrainOverrun when handlers were not done in the time of a drain.
        """
        async with anyio.create_task_group() as background:
            background.start_soon(self._listen)
            background.start_soon(self._tell_ready)
            await background.start(self._settler.run)
            background.start_soon(self._watch.run)
            if self._address.name.endswith("/1"):  # the others would count the same messages
                background.start_soon(sample_depth, self._pool, self._queue)
            await self._watch.look()
            await self._suspecting.begin()
            background.start_soon(self._suspecting.run)
            background.start_soon(self._retire_when_due)
            background.start_soon(self._distributor.gathering.run_due)
            background.start_soon(self._leases.tell_settled)
            await self._serve()
            await self._wind_up()
            await self._leases.flush()
            background.cancel_scope.cancel()
        names = ", ".join(sorted(self._retirement.because_of))
        if names and not self._draining:
            raise HandlerOverran(f"over its time and not to be interrupted: {names}")
        if self._cut_short:
            raise DrainOverrun(f"{self._cut_short} handlers did not end in the time of the drain")

    async def _serve(self) -> None:
        """Until all work in hand has ended, or the time for it is over."""
        with self._working, closing(self._work):
            async with anyio.create_task_group() as workers:
                for _ in range(self._pool.workers):
                    workers.start_soon(self._worker.work, self._work)
                await self._receiver.run()
                self._work.close()

    async def _retire_when_due(self) -> None:
        await self._retirement.watch(self._take_no_more, lambda: self._receiver.asking)
        self._deadline = min(self._deadline, self._pool.clock() + self._pool.timing.retire_seconds)
        self._working.cancel()

    async def _wind_up(self) -> None:
        hung = 0
        with anyio.move_on_after(self._seconds_left(self._pool.timing.last_word_seconds)):
            hung = await self._retirement.conclude()
        interrupted = self._pool.hand.interrupted()
        running = self._pool.hand.abandon()
        self._cut_short = hung + len(interrupted) + len(running)
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
        self._draining = True
        self._deadline = deadline
        self._working.deadline = anyio.current_time() + self._seconds_left(
            self._pool.timing.settle_seconds
        )
        self._take_no_more()

    def _take_no_more(self) -> None:
        """Receive nothing, and give back what has not begun."""
        self._pool.stopping.set()
        self._settler.release(self._distributor.take_waiting() + self._solitude.take_waiting())
        self._pool.change.notify()

    def _seconds_left(self, kept: float) -> float:
        """Until `kept` seconds before the drain's deadline."""
        return max(0.0, self._deadline - self._pool.clock() - kept)
