"""One destination: events wait for it in order, leave in packs, and come back with an answer."""

import logging
from collections.abc import Sequence
from typing import Protocol

import anyio
import anyio.to_thread

from outboxd.actors.relay.flights import Flights
from outboxd.actors.relay.shipment import Parcel, Shipment
from outboxd.actors.relay.surroundings import Surroundings
from outboxd.core.breaker import Breaker
from outboxd.core.errors import OutageKind, Unavailable
from outboxd.core.holdings import Holding
from outboxd.core.packing import Packer
from outboxd.core.relay_outcomes import (
    Accepted,
    Away,
    DeliveryResult,
    EntryResult,
    Faulted,
    Refused,
)
from outboxd.core.settings import Envelope
from outboxd.ports.destination import Destination, PackRefused, Withheld
from outboxd.ports.relay_observer import FailureKind, Stage

log = logging.getLogger(__name__)

LINGER_SECONDS = 0.005
"""How long a pack that is not full waits for company while others are under way."""

PROBE_SECONDS = 1.0
"""How long a destination that may be back waits for something to try it with, before asking."""

PAUSED = Away(paused=True)
NOT_SENT = Away(paused=False)


class Office(Protocol):
    """Whoever hands events to lines and decides what becomes of them."""

    def room(self) -> int:
        """How many more events may be in flight or accepted and not yet marked."""

    def reported(self, shipment: Shipment, destination: str, result: DeliveryResult) -> None:
        """What became of an event here."""

    def probing(self, destination: str, events: int) -> None:
        """The pause is over: a few events are needed to see whether the destination is back."""

    def recovered(self, destination: str) -> None:
        """The destination is back."""


class Line:
    """Packs in flight to one destination, each in a thread, at most `packs_in_flight` of them."""

    def __init__(
        self,
        name: str,
        destination: Destination,
        packs_in_flight: int,
        flights: Flights,
        around: Surroundings,
    ) -> None:
        self.name = name
        self._destination = destination
        self._packs_in_flight = packs_in_flight
        self._flights = flights
        self._observer = around.observer
        self._clock = around.clock
        self._breaker = Breaker(around.dice)
        self._packer: Packer[Parcel] = Packer(destination.limits)
        self._packs = 0
        self._due = False
        self._threads = anyio.CapacityLimiter(packs_in_flight)
        self._work = anyio.Event()

    @property
    def down(self) -> bool:
        """Events for this destination have to wait until it is back."""
        return self._breaker.down

    def offer(self, shipment: Shipment, envelope: Envelope) -> Refused | Away | None:
        """Queue an event, or say at once why not."""
        if self._breaker.down and not self._takes_for_probe():
            return PAUSED
        entry = self._destination.prepare(shipment.event, envelope)
        if isinstance(entry, Refused):
            self._observer.failed(self.name, FailureKind.REFUSED, 1)
            return entry
        self._packer.add(Parcel(shipment, entry), entry.size)
        self._work.set()
        return None

    def wake(self) -> None:
        """There may be room for a pack."""
        self._work.set()

    def withdraw(self, holdings: set[Holding]) -> list[Shipment]:
        """Take back what has not left yet of these buckets."""
        return [
            parcel.shipment
            for parcel in self._packer.withdraw(lambda parcel: parcel.shipment.holding in holdings)
        ]

    async def run(self, office: Office) -> None:
        """Send packs until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._probe(office)
                while pack := self._next_pack(office.room()):
                    # Counted here, not in the task: the room for the next pack depends on it.
                    number = self._flights.took_off(len(pack))
                    tasks.start_soon(self._ship, pack, number, self._breaker.episode, office)
                await self._changed(office.room())

    def _takes_for_probe(self) -> bool:
        waiting = len(self._packer) + self._packs * self._packer.limits.entries
        return self._breaker.paused_until is None and waiting < self._packer.limits.entries

    def _probe(self, office: Office) -> None:
        self._breaker.pause_over(self._clock())
        if self._wants_probe:
            office.probing(self.name, self._packer.limits.entries)

    @property
    def _wants_probe(self) -> bool:
        """The pause is over and there is nothing to try with. Asked again and again: the events
        that were brought last time may have been discarded by somebody."""
        idle = self._packs == 0 and len(self._packer) == 0
        return self._breaker.down and self._breaker.paused_until is None and idle

    def _next_pack(self, room: int) -> list[Parcel]:
        if self._packs >= self._breaker.allowed(self._packs_in_flight):
            return []
        if self._packs > 0 and not self._packer.full and not self._due:
            return []
        pack = self._packer.take(room)
        self._packs += 1 if pack else 0
        return pack

    async def _changed(self, room: int) -> None:
        """Wait for work, for the end of a pause, or for a lingering pack's time."""
        patience: float | None = None
        if self._breaker.paused_until is not None:
            patience = max(0.0, self._breaker.paused_until - self._clock())
        elif self._wants_probe:
            patience = PROBE_SECONDS
        elif (
            len(self._packer)
            and room
            and self._packs < self._breaker.allowed(self._packs_in_flight)
        ):
            patience = LINGER_SECONDS
        self._due = False
        with anyio.move_on_after(patience) as waiting:
            await self._work.wait()
        self._due = waiting.cancelled_caught
        self._work = anyio.Event()

    async def _ship(self, pack: list[Parcel], number: int, episode: int, office: Office) -> None:
        try:
            await self._send(pack, episode, office)
        finally:
            self._packs -= 1
            self._flights.landed(number, len(pack))
            self.wake()

    async def _send(self, pack: list[Parcel], episode: int, office: Office) -> None:
        started = self._clock()
        try:
            results = await anyio.to_thread.run_sync(
                self._call, pack, abandon_on_cancel=True, limiter=self._threads
            )
        except Withheld:
            self._report(pack, [NOT_SENT] * len(pack), office)
        except PackRefused as error:
            await self._isolate(pack, episode, office, error)
        except Unavailable as error:
            self._failed(pack, episode, office, error)
        else:
            if all(isinstance(said, Faulted) and said.blameless for said in results):
                self._failed(pack, episode, office, _nothing_taken(results))
            else:
                self._observer.took(Stage.SEND, self._clock() - started)
                self._count(pack, results)
                if self._breaker.succeeded(episode):
                    self._observer.recovered(self.name)
                    log.info("destination is back", extra={"destination": self.name})
                    office.recovered(self.name)
                self._report(pack, results, office)

    def _call(self, pack: list[Parcel]) -> Sequence[EntryResult]:
        """In a thread."""

        # Asked by the destination and not here: between this line and the socket the SDK signs, may
        # fetch credentials, and may be frozen longer than the lease lasts; a successor would by
        # then have published the same events, or later ones.
        def still_ours(seconds: float) -> bool:
            now = self._clock()
            return all(parcel.shipment.holding.trusted_for(seconds, now) for parcel in pack)

        self._destination.open()
        return self._destination.send([parcel.entry for parcel in pack], still_ours)

    async def _isolate(
        self, pack: list[Parcel], episode: int, office: Office, error: PackRefused
    ) -> None:
        if len(pack) == 1:
            self._observer.failed(self.name, FailureKind.REFUSED, 1)
            self._report(pack, [Refused(str(error))], office)
            return
        middle = len(pack) // 2
        await self._send(pack[:middle], episode, office)
        await self._send(pack[middle:], episode, office)

    def _failed(self, pack: list[Parcel], episode: int, office: Office, error: Unavailable) -> None:
        if error.kind is OutageKind.TIMEOUT:
            self._observer.uncertain(self.name, len(pack))
        if self._breaker.failed(episode, self._clock()):
            self._observer.paused(self.name, error.kind)
            log.warning(
                "destination paused",
                extra={"destination": self.name, "kind": error.kind, "error": str(error)},
            )
            waiting = self._packer.withdraw(lambda _: True)
            self._report(waiting, [PAUSED] * len(waiting), office)
        self._report(pack, [PAUSED] * len(pack), office)

    def _report(
        self, pack: list[Parcel], results: Sequence[DeliveryResult], office: Office
    ) -> None:
        for parcel, result in zip(pack, results, strict=True):
            office.reported(parcel.shipment, self.name, result)

    def _count(self, pack: list[Parcel], results: Sequence[EntryResult]) -> None:
        now = self._clock()
        ages = [
            now - parcel.shipment.event.born_at
            for parcel, said in zip(pack, results, strict=True)
            if isinstance(said, Accepted)
        ]
        self._observer.accepted(self.name, ages)
        if len(ages) < len(pack):
            for kind in FailureKind:
                failures = sum(1 for said in results if _failure_kind(said) is kind)
                if failures:
                    self._observer.failed(self.name, kind, failures)


def _failure_kind(said: EntryResult) -> FailureKind | None:
    match said:
        case Accepted():
            return None
        case Refused():
            return FailureKind.REFUSED
        case Faulted(blameless=True):
            return FailureKind.UNAVAILABLE
        case Faulted():
            return FailureKind.FAULT


def _nothing_taken(results: Sequence[EntryResult]) -> Unavailable:
    reason = next(said.reason for said in results if isinstance(said, Faulted))
    return Unavailable(reason, OutageKind.THROTTLED)
