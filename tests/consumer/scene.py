"""A pool with everything around it in this process: queue, inbox, handlers, extender."""

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import anyio
import msgspec

from outboxd.actors.consumer import Consumer
from outboxd.actors.consumer.timing import Timing
from outboxd.adapters.handlers import LoadedHandler, Runner
from outboxd.adapters.handlers.inspection import inspect_handler
from outboxd.adapters.postgres.consumer_database import ConsumerDatabase
from outboxd.adapters.receive_counts import ReceiveCounts
from outboxd.channels.mailbox import open_mailbox
from outboxd.channels.protocol import (
    Address,
    Alone,
    Drain,
    ExtenderUp,
    Forget,
    Forgotten,
    Hold,
    Message,
    Ready,
    Settled,
    Suspect,
)
from outboxd.core.clock import boottime
from outboxd.core.errors import DrainOverrun, HandlerOverran, OutageKind, Unavailable
from outboxd.core.messages import ReceivedMessage
from outboxd.core.outcomes import DeadLetter, DeadReason
from outboxd.core.retry import Backoff
from outboxd.core.settings import HandlerSettings, QueueSettings
from outboxd.ports.consumer_observer import Processed
from outboxd.ports.handling import HandlerRunner
from outboxd.ports.inbox import Inbox, Standing
from outboxd.ports.progress import Progress
from outboxd.ports.queue import Depth
from outboxd.ports.suspects import Suspicion
from tests.consumer.fake_queue import FakeQueue

OWNER = Address("consumer:orders/1", 1)

QUICK = Timing(
    call_timeout_seconds=1.0,
    linger_seconds=0.001,
    settle_seconds=0.3,
    last_word_seconds=0.05,
    orphan_seconds=0.5,
    sample_seconds=0.05,
    overdue_look_seconds=0.02,
    retire_seconds=2.0,
    receive_backoff=Backoff(first_seconds=0.01, cap_seconds=0.02),
    fatal_backoff=Backoff(first_seconds=0.01, cap_seconds=0.02),
    settle_backoff=Backoff(first_seconds=0.01, cap_seconds=0.05),
    letter_backoff=Backoff(first_seconds=10, cap_seconds=300),
    database_backoff=Backoff(first_seconds=0.01, cap_seconds=0.02),
)


async def eventually(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Return once the condition holds; a test waits for facts, and never for time."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110 - any condition, also one nobody signals
            await anyio.sleep(0.005)


def event_body(
    event_type: str = "order.created", payload: object = None, event_id: UUID | str | None = None
) -> str:
    """A plain event."""
    return json.dumps(
        {
            "id": str(event_id or uuid4()),
            "type": event_type,
            "aggregate_type": "order",
            "aggregate_id": "17",
            "occurred_at": "2024-05-01T12:00:00Z",
            "payload": payload,
        }
    )


def handler_settings(name: str, **changes: Any) -> HandlerSettings:
    values = {"event": "order.*", "handler": "tests:none", "name": name, "inbox": "off", **changes}
    return HandlerSettings(**values)


def loaded(function: Callable[..., Any], name: str = "", **changes: Any) -> LoadedHandler:
    """A function as a handler, without a configuration file."""
    settings = handler_settings(name or getattr(function, "__name__", "handler"), **changes)
    signature = inspect_handler(function, settings.inbox, settings.batch)
    return LoadedHandler(settings, function, signature)


def queue_settings(handlers: Sequence[LoadedHandler], **changes: Any) -> QueueSettings:
    values = {
        "concurrency": 4,
        "visibility_seconds": 30,
        "wait_seconds": 1,
        "handlers": tuple(handler.settings for handler in handlers),
        **changes,
    }
    return QueueSettings(**values)


class Observed:
    """Remembers what the pool tells."""

    def __init__(self) -> None:
        self.processed_by: list[tuple[str, str]] = []
        self.retries: list[tuple[str, str]] = []
        self.dead: list[tuple[str, str]] = []
        self.poisoned: list[str] = []
        self.deletes_failed: list[str] = []
        self.receive_failures: list[str] = []
        self.depths: list[Depth] = []
        self.running = 0

    def count(self, outcome: Processed) -> int:
        return sum(1 for _, seen in self.processed_by if seen == outcome)

    def received(self, count: int, redelivered: int) -> None: ...

    def receive_failed(self, kind: OutageKind) -> None:
        self.receive_failures.append(kind.value)

    def waited(self, seconds: float) -> None: ...

    def started(self, handler: str) -> None:
        self.running += 1

    def finished(self, handler: str, seconds: float, ok: bool) -> None:
        self.running -= 1

    def processed(self, handler: str, outcome: Processed) -> None:
        self.processed_by.append((handler, outcome.value))

    def handled(self, handler: str, seconds_since_occurred: float) -> None: ...

    def retried(self, handler: str, cause: str) -> None:
        self.retries.append((handler, cause))

    def dead_lettered(self, handler: str, reason: DeadReason) -> None:
        self.dead.append((handler, reason.value))

    def poison(self, reason: DeadReason) -> None:
        self.poisoned.append(reason.value)

    def delete_failed(self, reason: str) -> None:
        self.deletes_failed.append(reason)

    def sampled(self, depth: Depth) -> None:
        self.depths.append(depth)


class FakeInbox:
    """Remembers in memory what PostgreSQL would; `away` makes every question an outage."""

    remembers = True

    def __init__(self) -> None:
        self.away = False
        self.attempts: dict[tuple[UUID, str], int] = {}
        self.buried: dict[tuple[UUID, str, str], DeadLetter] = {}
        self.pings = 0

    async def standings(
        self, event_id: UUID, message: ReceivedMessage, handlers: Sequence[str]
    ) -> Mapping[str, Standing]:
        self._ask()
        return {
            name: Standing(
                self.attempts.get((event_id, name), 0),
                dead=self.buried.get((event_id, name, message.message_id)),
            )
            for name in handlers
        }

    async def failed(
        self, event_id: UUID, message: ReceivedMessage, handler: str, error: str
    ) -> int:
        self._ask()
        self.attempts[event_id, handler] = self.attempts.get((event_id, handler), 0) + 1
        return self.attempts[event_id, handler]

    async def noted(
        self, event_id: UUID, message: ReceivedMessage, handler: str, error: str
    ) -> None:
        self._ask()
        self.attempts.setdefault((event_id, handler), 0)

    async def dead(
        self, event_id: UUID, message: ReceivedMessage, handler: str, letter: DeadLetter
    ) -> None:
        self._ask()
        self.buried[event_id, handler, message.message_id] = letter

    async def tried(
        self, handler: str, deliveries: Sequence[tuple[UUID, ReceivedMessage]]
    ) -> Set[UUID]:
        self._ask()
        return {event for event, _ in deliveries if (event, handler) in self.attempts}

    async def ping(self) -> None:
        self.pings += 1
        self._ask()

    def _ask(self) -> None:
        if self.away:
            raise Unavailable("no database")


class FakeSuspects:
    """The table of suspects, in memory; `away` makes every question an outage."""

    def __init__(self) -> None:
        self.away = False
        self.known: dict[str, Suspicion] = {}
        self.recorded: list[Suspect] = []

    async def record(self, suspects: Sequence[Suspect]) -> None:
        self._ask()
        self.recorded += suspects
        for suspect in suspects:
            before = self.known.get(suspect.message_id, Suspicion(0, ""))
            crashes = before.crashes_alone + suspect.alone
            self.known[suspect.message_id] = Suspicion(crashes, suspect.reason)

    async def look_up(self, messages: Sequence[ReceivedMessage]) -> Mapping[str, Suspicion]:
        self._ask()
        ids = {message.message_id for message in messages}
        return {i: suspicion for i, suspicion in self.known.items() if i in ids}

    async def cleared(self, message_ids: Sequence[str]) -> None:
        self._ask()
        for message_id in message_ids:
            self.known.pop(message_id, None)

    def _ask(self) -> None:
        if self.away:
            raise Unavailable("no database")


class Extender:
    """The supervisor's and the extender's side of the mailbox; `mute` answers no Forget."""

    def __init__(self, pool: "Pool") -> None:
        self._pool = pool
        self.mute = False
        self.heard: list[Message] = []
        self.ready = anyio.Event()

    async def run(self) -> None:
        while True:
            try:
                message = await self._pool.counterpart.heard()
            except (anyio.ClosedResourceError, anyio.EndOfStream):
                return  # hung up
            self.heard.append(message)
            self._note(message)
            match message:
                case Ready():
                    self.ready.set()
                case Forget(owner=owner, correlation=correlation) if not self.mute:
                    await self._pool.counterpart.tell(Forgotten(owner, correlation))
                case _:
                    pass

    def _note(self, message: Message) -> None:
        """In the queue's history, so that the order of the two can be seen."""
        match message:
            case Hold() | Alone() | Forget() | Settled():
                self._pool.queue.history.append(type(message).__name__)
            case _:
                pass

    def tokens_held(self) -> set[int]:
        """Held and never settled."""
        held: set[int] = set()
        for message in self.heard:
            match message:
                case Hold(leases=leases):
                    held |= {lease.token for lease in leases}
                case Settled(tokens=tokens):
                    held -= set(tokens)
                case _:
                    pass
        return held


class Pool:
    """A running consumer; `finished` is set when its `run` has returned."""

    def __init__(
        self,
        queue: FakeQueue,
        settings: QueueSettings,
        runner: HandlerRunner,
        inbox: Inbox,
        timing: Timing,
        clock: Callable[[], float],
        suspects: FakeSuspects,
        inherited: Sequence[Suspect],
    ) -> None:
        self.queue = queue
        self.observed = Observed()
        self.progress = Progress()
        self.finished = anyio.Event()
        self.overran = False
        self.hung = ""
        self.mailbox, self.counterpart = open_mailbox()
        self.extender = Extender(self)
        self.consumer = Consumer(
            "orders",
            settings,
            address=OWNER,
            mailbox=self.mailbox,
            queue=queue,
            runner=runner,
            inbox=inbox,
            suspects=suspects,
            inherited=inherited,
            progress=self.progress,
            observer=self.observed,
            timing=timing,
            clock=clock,
            wall_clock=time.time,
            dice=lambda: 0.0,
        )

    async def run(self) -> None:
        try:
            await self.consumer.run()
        except DrainOverrun:
            self.overran = True
        except HandlerOverran as error:
            self.hung = str(error)
        self.finished.set()

    async def sees(self, fact: str) -> None:
        """Return once the fact stands in the queue's history."""
        await eventually(lambda: fact in self.queue.history)

    async def drain(self, seconds: float = 5.0, clock: Callable[[], float] = boottime) -> None:
        await self.counterpart.tell(Drain(clock() + seconds))

    async def drained(self, seconds: float = 5.0) -> None:
        await self.drain(seconds)
        with anyio.fail_after(seconds + 2):
            await self.finished.wait()


@asynccontextmanager
async def a_pool(
    *handlers: LoadedHandler,
    queue: FakeQueue | None = None,
    inbox: Inbox | None = None,
    database: ConsumerDatabase | None = None,
    runner: HandlerRunner | None = None,
    timing: Timing = QUICK,
    clock: Callable[[], float] = boottime,
    extender_up: bool = True,
    suspects: FakeSuspects | None = None,
    inherited: Sequence[Suspect] = (),
    **changes: Any,
) -> AsyncIterator[Pool]:
    """A pool that runs within the block, and is drained at its end."""
    settings = queue_settings(handlers, **changes)
    queue = queue or FakeQueue(clock, settings.visibility_seconds, name=settings.queue_name or "")
    memory: Inbox = ReceiveCounts() if database is None else database.inbox
    if runner is None:
        runner = Runner(handlers, concurrency=settings.concurrency, database=database)
    pool = Pool(
        queue,
        settings,
        runner,
        inbox or memory,
        timing,
        clock,
        suspects or FakeSuspects(),
        inherited,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.extender.run)
        tasks.start_soon(pool.run)
        if extender_up:
            await pool.counterpart.tell(ExtenderUp())
        try:
            yield pool
            if not pool.finished.is_set():
                await pool.drain(5.0, clock)
                with anyio.fail_after(10):
                    await pool.finished.wait()
        finally:
            tasks.cancel_scope.cancel()
            # The pool's last word may have come too late for the extender, which ends with it here.
            pool.extender.heard += [parcel.message for parcel in pool.counterpart.said()]
            pool.counterpart.close()
            pool.mailbox.close()


def reason(letter_attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What the `outboxd` attribute of a letter says."""
    decoded: dict[str, Any] = msgspec.json.decode(letter_attributes["outboxd"].value)
    return decoded
