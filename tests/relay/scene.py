"""A relay on a real database, with destinations that do as they are told."""

import inspect
import threading
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import UUID, uuid4

import anyio
import msgspec
import psycopg

from outboxd.actors.relay import Relay
from outboxd.adapters.postgres.buckets import PostgresBuckets
from outboxd.adapters.postgres.outbox import PostgresOutbox
from outboxd.adapters.postgres.sessions import Sessions
from outboxd.adapters.postgres.upkeep import PostgresUpkeep
from outboxd.adapters.postgres.wake_ups import PostgresWakeUps
from outboxd.channels.mailbox import Counterpart, open_mailbox
from outboxd.channels.protocol import Drain, Ready
from outboxd.core.clock import boottime
from outboxd.core.horizon import Sample
from outboxd.core.outbox import DeliveryMark, FailureMark, StoredEvent
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import Accepted, EntryResult, Refused
from outboxd.core.settings import DatabaseSettings, Envelope, RelaySettings, RouteSettings
from outboxd.core.windows import Window
from outboxd.ports.destination import Destination, Entry, StillOurs, Withheld
from outboxd.ports.outbox import Outbox, ReadCutOff
from outboxd.ports.progress import Progress

PATIENCE_SECONDS = 20.0

LISTENER = "listener under test"

ACCEPTED = Accepted()

QUICK = RelaySettings(
    routes=(RouteSettings(events="order.*", to=("sqs:orders",)),),
    poll_min_seconds=0.005,
    poll_max_seconds=0.05,
    lease_seconds=3.0,
    renew_seconds=0.2,
    packs_in_flight=4,
    backoff_first_seconds=0.02,
    backoff_cap_seconds=0.1,
)
"""Only routes are not what a configuration would have; everything is faster."""


def quick(**changes: Any) -> RelaySettings:
    return msgspec.structs.replace(QUICK, **changes)


Script = Callable[[list[StoredEvent]], Sequence[EntryResult]]


def accepts_all(events: list[StoredEvent]) -> Sequence[EntryResult]:
    return [ACCEPTED] * len(events)


class FakeDestination:
    """Keeps what it accepts, in order; `script` says what becomes of each pack."""

    def __init__(
        self,
        script: Script = accepts_all,
        *,
        limits: PackLimits | None = None,
        call_seconds: float = 0.5,
    ) -> None:
        self.script = script
        self.limits = limits or PackLimits(entries=10, pack_bytes=100_000, entry_bytes=10_000)
        self.call_seconds = call_seconds
        self.packs: list[list[int]] = []
        self.accepted: list[StoredEvent] = []
        self.opened = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        self.opened += 1

    def prepare(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        size = len(event.payload)
        if size > self.limits.entry_bytes:
            return Refused(f"{size} bytes are above {self.limits.entry_bytes}")
        return Entry((event, envelope), size)

    def send(self, entries: Sequence[Entry], still_ours: StillOurs) -> Sequence[EntryResult]:
        if not still_ours(self.call_seconds):
            raise Withheld("the lease could end before the call does")
        events: list[StoredEvent] = [entry.content[0] for entry in entries]
        with self._lock:
            self.packs.append([event.seq for event in events])
        results = self.script(events)
        with self._lock:
            self.accepted += [
                event
                for event, said in zip(events, results, strict=True)
                if isinstance(said, Accepted)
            ]
        return results

    @property
    def seqs(self) -> list[int]:
        return [event.seq for event in self.accepted]

    @property
    def repeated(self) -> list[int]:
        return [seq for seq, count in Counter(self.seqs).items() if count > 1]

    @property
    def inversions(self) -> list[tuple[int, int]]:
        """Pairs of one aggregate whose first deliveries came in the wrong order."""
        last: dict[str, int] = {}
        seen: set[int] = set()
        wrong: list[tuple[int, int]] = []
        for event in self.accepted:
            if event.seq in seen:
                continue
            seen.add(event.seq)
            before = last.get(event.aggregate_id, 0)
            if before > event.seq:
                wrong.append((before, event.seq))
            last[event.aggregate_id] = max(before, event.seq)
        return wrong


class Gate:
    """Holds threads back until it is opened, but no test for ever."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.waiting = 0

    def open(self) -> None:
        self._open.set()

    def pass_through(self) -> None:
        self.waiting += 1
        assert self._open.wait(PATIENCE_SECONDS), "nobody opened the gate"


class Facts:
    """Whatever the relay told its observer: how often, and with what."""

    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.told.append((name, args, kwargs))

    def count(self, name: str) -> int:
        return sum(1 for told in self.told if told[0] == name)

    def last(self, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return next((told[1], told[2]) for told in reversed(self.told) if told[0] == name)


class WrappedOutbox:
    """The real outbox, with hooks around its statements."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.after_read: Callable[[list[StoredEvent]], Awaitable[None]] | None = None
        self.before_mark: Callable[[], Awaitable[None]] | None = None
        self.reads = 0
        self.starts: dict[int, int] = {}
        self.page_sizes: list[int] = []
        self.takes_too_long: Callable[[Mapping[int, Window], int], bool] = lambda *_: False
        """Of the windows, and how many rows of each."""
        self.cut_off = 0
        self.marked = 0

    async def read(
        self,
        windows: Mapping[int, Window],
        per_bucket: int,
        excluded_keys: str,
        excluded_seqs: Collection[int],
    ) -> list[StoredEvent]:
        self.reads += 1
        self.starts.update({bucket: window.after for bucket, window in windows.items()})
        self.page_sizes.append(per_bucket)
        if self.takes_too_long(windows, per_bucket):
            self.cut_off += 1
            raise ReadCutOff("canceling statement due to statement timeout")
        page = await self._outbox.read(windows, per_bucket, excluded_keys, excluded_seqs)
        if self.after_read is not None:
            await self.after_read(page)
        return page

    async def sample(self) -> Sample:
        return await self._outbox.sample()

    async def mark_published(self, seqs: Collection[int]) -> frozenset[int]:
        if self.before_mark is not None:
            await self.before_mark()
        pending = await self._outbox.mark_published(seqs)
        # The relay goes on without a pause from here, so whoever sees this sees a relay that knows.
        self.marked += len(seqs)
        return pending

    async def mark_delivered(self, marks: Sequence[DeliveryMark]) -> None:
        await self._outbox.mark_delivered(marks)

    async def mark_failed(self, relay: UUID, marks: Sequence[FailureMark]) -> None:
        await self._outbox.mark_failed(relay, marks)


class Running:
    """A relay that runs, and everything around it."""

    def __init__(
        self,
        relay: Relay,
        identity: UUID,
        counterpart: Counterpart,
        progress: Progress,
        facts: Facts,
        outbox: WrappedOutbox,
    ) -> None:
        self.relay = relay
        self.identity = identity
        self.counterpart = counterpart
        self.progress = progress
        self.facts = facts
        self.outbox = outbox
        self.ended = anyio.Event()

    async def run(self) -> None:
        await self.relay.run()
        self.ended.set()

    async def ready(self) -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            assert isinstance(await self.counterpart.heard(), Ready)

    async def drain(self, seconds: float = 10.0) -> None:
        await self.counterpart.tell(Drain(boottime() + seconds))
        with anyio.fail_after(PATIENCE_SECONDS):
            await self.ended.wait()


class Scene:
    """An outbox, and what was put into it."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.listener_dsn = dsn

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with psycopg.connect(
            self.dsn, autocommit=True, options="-c search_path=outboxd"
        ) as connection:
            yield connection

    def ask(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self.connection() as connection:
            return connection.execute(query.encode(), parameters).fetchall()

    def run(self, query: str, *parameters: object) -> None:
        with self.connection() as connection:
            connection.execute(query.encode(), parameters)

    def insert(
        self,
        aggregates: Sequence[str],
        event_type: str = "order.placed",
        payload: str = '{"amount": 1}',
    ) -> list[int]:
        """One event for each named aggregate, in one transaction; returns their places."""
        rows = self.ask(
            """
            INSERT INTO outbox_events (event_type, aggregate_type, aggregate_id, payload)
            SELECT %s, 'order', id, %s::jsonb
              FROM unnest(%s::text[]) WITH ORDINALITY AS given(id, n)
             ORDER BY n
            RETURNING seq
            """,
            event_type,
            payload,
            list(aggregates),
        )
        return [seq for (seq,) in rows]

    def pending(self) -> list[int]:
        rows = self.ask(
            "SELECT seq FROM outbox_events WHERE published_at IS NULL AND dead_at IS NULL"
            " ORDER BY seq"
        )
        return [seq for (seq,) in rows]

    def dead(self) -> dict[int, str]:
        return dict(self.ask("SELECT seq, last_error FROM outbox_events WHERE dead_at IS NOT NULL"))

    def owned(self) -> Counter[UUID]:
        rows = self.ask("SELECT owner FROM outbox_buckets WHERE owner IS NOT NULL")
        return Counter(owner for (owner,) in rows)

    @asynccontextmanager
    async def relay(
        self,
        destinations: Mapping[str, Destination] | FakeDestination,
        settings: RelaySettings = QUICK,
        *,
        predecessors: Sequence[UUID] = (),
        clock: Callable[[], float] = boottime,
    ) -> AsyncIterator[Running]:
        """Run a relay for the length of the block; then it is drained, unless it has ended."""
        if isinstance(destinations, FakeDestination):
            destinations = {"sqs:orders": destinations}
        sessions = Sessions(DatabaseSettings(url=self.dsn), "relay under test")
        listeners = Sessions(DatabaseSettings(url=self.listener_dsn), LISTENER)
        mailbox, counterpart = open_mailbox()
        identity, progress, facts = uuid4(), Progress(), Facts()
        outbox = WrappedOutbox(
            PostgresOutbox(sessions, "outboxd", keep_published=settings.retention_days > 0)
        )
        try:
            relay = Relay(
                mailbox,
                settings,
                identity=identity,
                predecessors=predecessors,
                buckets=PostgresBuckets(sessions, "outboxd"),
                outbox=outbox,
                upkeep=PostgresUpkeep(sessions, "outboxd"),
                destinations=destinations,
                observer=facts,
                progress=progress,
                wake_ups=PostgresWakeUps(sessions, listeners, "outboxd")
                if settings.wake_up
                else None,
                clock=clock,
            )
            running = Running(relay, identity, counterpart, progress, facts, outbox)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(running.run)
                yield running
                if not running.ended.is_set():
                    await running.drain()
        finally:
            await sessions.close()
            counterpart.close()
            mailbox.close()


async def eventually(fact: Callable[[], object]) -> None:
    """Wait until `fact()` is true."""
    for _ in range(int(PATIENCE_SECONDS / 0.01)):
        if fact():
            return
        await anyio.sleep(0.01)
    raise AssertionError(f"never became true: {inspect.getsource(fact).strip()}")
