"""The relay: reads the outbox, publishes in order, writes down what was accepted."""

import logging
import random
from collections.abc import Callable, Collection, Mapping
from uuid import UUID

import anyio

from outboxd.actors.janitor import Janitor
from outboxd.actors.relay.dispatch import Dispatch
from outboxd.actors.relay.flights import Flights
from outboxd.actors.relay.ledger import Ledger
from outboxd.actors.relay.line import Line
from outboxd.actors.relay.ownership import Ownership
from outboxd.actors.relay.reading import Reading
from outboxd.actors.relay.settling import Settling
from outboxd.actors.relay.surroundings import Memory, Surroundings
from outboxd.actors.relay.waking import Waking
from outboxd.actors.relay.watching import WATCHER_BUCKET, Watching
from outboxd.channels.mailbox import Mailbox
from outboxd.channels.protocol import Drain, Ready
from outboxd.core.chains import Chains
from outboxd.core.clock import boottime
from outboxd.core.errors import SettingsError
from outboxd.core.holdings import Holdings
from outboxd.core.lanes import lanes_by
from outboxd.core.retry import Dice
from outboxd.core.routes import RouteTable
from outboxd.core.settings import RelaySettings
from outboxd.ports.destination import Destination
from outboxd.ports.outbox import Buckets, Outbox, Upkeep
from outboxd.ports.progress import Progress
from outboxd.ports.relay_observer import RelayObserver
from outboxd.ports.wake_ups import WakeUps

log = logging.getLogger(__name__)

ORPHAN_SECONDS = 4.5
"""How long an orphan has: its process is ended 5 s after it lost its supervisor."""

RELEASE_SECONDS = 2.0
"""How long a drain tries to give buckets back; if it cannot, their leases run out by themselves."""

GOODBYE_SECONDS = 0.5
"""What is kept of a drain's time for the last words of the process."""

LAST_STATEMENT_SECONDS = 0.3
"""How long statements that nobody needs any more may take to end by themselves, out of those: one
that is cancelled costs its connection, and the driver warns of it."""

SETTLE_SECONDS = 1.5
"""What is kept of the rest for marks and releases, however long the calls take."""


class Relay:
    """Publishes every committed event at least once and each aggregate's events in order.

    Without a fault nothing is published twice. After a kill, only what was in flight or accepted
    and not yet marked may be: at most `unsettled_limit` events.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        settings: RelaySettings,
        *,
        identity: UUID,
        predecessors: Collection[UUID],
        buckets: Buckets,
        outbox: Outbox,
        upkeep: Upkeep,
        destinations: Mapping[str, Destination],
        observer: RelayObserver,
        progress: Progress,
        wake_ups: WakeUps | None = None,
        clock: Callable[[], float] = boottime,
        dice: Dice = random.random,
    ) -> None:
        """`identity` is new for every start, and `predecessors` are dead for certain. Without
        `wake_ups` it reads by the clock alone.

        Raises SettingsError when a route names a destination that is not in `destinations`, or a
        lease is too short for a call.
        """
        sending_seconds = _longest_call(settings, destinations)
        around = Surroundings(observer, clock, dice)
        routes = RouteTable(settings.routes)
        memory = Memory(Holdings(), Chains(lanes_by(routes)), Ledger())
        self._mailbox = mailbox
        self._clock = clock
        self._holdings = memory.holdings
        self._flights = Flights(progress, clock)
        self._lines = {
            name: Line(name, destination, settings.packs_in_flight, self._flights, around)
            for name, destination in destinations.items()
        }
        self._dispatch = Dispatch(
            settings,
            routes,
            self._lines,
            memory,
            self._flights,
            lambda: self._reading.again(),
            around,
        )
        self._waking = (
            None
            if wake_ups is None
            else Waking(wake_ups, identity, settings, lambda: self._reading.wake(), around)
        )
        self._reading = Reading(
            outbox,
            settings,
            memory,
            self._dispatch,
            sending_seconds,
            progress,
            around,
            self._waking,
        )
        self._settling = Settling(outbox, identity, memory.ledger, self._dispatch, around)
        self._ownership = Ownership(
            buckets, identity, predecessors, settings, memory.holdings, self._dispatch, around
        )
        self._watching = Watching(upkeep, memory, around)
        self._janitor = Janitor(upkeep, settings.retention_days, self._on_duty, observer, dice)
        self._draining = anyio.Event()
        self._deadline = float("inf")
        self._ending: anyio.CancelScope | None = None

    async def run(self) -> None:
        """Work until drained or orphaned; returns before the drain's deadline."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen)
            for line in self._lines.values():
                tasks.start_soon(line.run, self._dispatch)
            for loop in (self._ownership, self._settling):
                tasks.start_soon(loop.run)
            async with anyio.create_task_group() as askers:
                for ask in (self._read, self._watching.run, self._janitor.run):
                    askers.start_soon(ask)
                if self._waking is not None:
                    askers.start_soon(self._waking.run)
                await self._draining.wait()
                await self._wind_up()
                askers.cancel_scope.deadline = anyio.current_time() + LAST_STATEMENT_SECONDS
            tasks.cancel_scope.cancel()

    async def _listen(self) -> None:
        async for message in self._mailbox:
            if isinstance(message, Drain):
                self._drain_before(message.deadline)
        # The supervisor is gone, and perhaps replaced already: make way.
        self._drain_before(self._clock() + ORPHAN_SECONDS)

    def _drain_before(self, deadline: float) -> None:
        self._deadline = min(self._deadline, deadline)
        if self._ending is not None:
            self._ending.deadline = self._scope_deadline()
        self._draining.set()

    async def _read(self) -> None:
        await self._ownership.tried.wait()
        await self._reading.run(self._say_ready)

    async def _say_ready(self) -> None:
        # Not "the database is healthy": an outage is to be borne here, not restarted away.
        await self._mailbox.send(Ready())

    async def _wind_up(self) -> None:
        """Finish the packs, mark what was accepted, give the buckets back; stop at the deadline."""
        log.info("relay draining", extra={"in_flight": self._flights.entries})
        for asker in (self._waking, self._reading, self._watching, self._janitor):
            if asker is not None:
                asker.stop()
        self._ownership.retire()
        with anyio.CancelScope(deadline=self._scope_deadline()) as self._ending:
            with anyio.CancelScope(deadline=self._scope_deadline() - SETTLE_SECONDS):
                await self._flights.all_landed()
            await self._settling.flushed()
            self._ownership.finish()
            # Nothing is unsettled any more: a database that is away keeps nobody waiting now.
            with anyio.move_on_after(RELEASE_SECONDS):
                await self._ownership.retired.wait()
        self._watching.measure()  # the last word on the gauges
        log.info("relay drained", extra={"buckets_kept": len(self._holdings)})

    def _scope_deadline(self) -> float:
        """When the drain ends, whatever is left, by the event loop's clock."""
        return anyio.current_time() + self._deadline - GOODBYE_SECONDS - self._clock()

    def _on_duty(self) -> bool:
        return self._holdings.get(WATCHER_BUCKET) is not None


def _longest_call(settings: RelaySettings, destinations: Mapping[str, Destination]) -> float:
    missing = [
        name for name in RouteTable(settings.routes).destinations if name not in destinations
    ]
    if missing:
        raise SettingsError([f'[[relay.routes]] names the unknown destination "{missing[0]}"'])
    longest = max((each.call_seconds for each in destinations.values()), default=0.0)
    left = settings.lease_seconds - 1.2 * settings.renew_seconds
    if longest >= left:
        raise SettingsError(
            [
                f"[relay] lease_seconds: a call to a destination may take {longest:g} s, but just "
                f"before a renewal only {left:g} s of a lease are left, so nothing would be sent"
            ]
        )
    return longest
