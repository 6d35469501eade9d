"""From a pending row to a verdict: routes it, hands it to its lines, decides, starts the next."""

import logging
from collections.abc import Callable, Mapping, Sequence

from outboxd.actors.relay.flights import Flights
from outboxd.actors.relay.ledger import Trouble
from outboxd.actors.relay.line import Line
from outboxd.actors.relay.shipment import Shipment
from outboxd.actors.relay.surroundings import Memory, Surroundings
from outboxd.core.chains import Parked, Waiting
from outboxd.core.holdings import Holding
from outboxd.core.log_facts import Payload, trace_facts
from outboxd.core.outbox import DeliveryMark, FailureMark, StoredEvent
from outboxd.core.recent import Recent
from outboxd.core.relay_outcomes import (
    Accepted,
    Away,
    Bury,
    DeliveryResult,
    HoldBack,
    Published,
    TryAgain,
    clean_error,
    judge,
)
from outboxd.core.retry import Backoff
from outboxd.core.routes import Route, RouteTable
from outboxd.core.settings import RelaySettings

log = logging.getLogger(__name__)

FOREVER = float("inf")

REMEMBERED_TYPES = 1_000

LOOK_AGAIN_SECONDS = 60.0
"""How long an event that waits for something with no time of its own (a route, an operator) is left
alone: meanwhile somebody may have discarded or requeued it."""


class Dispatch:
    """Owns the chains: whatever moves, parks or frees a lane happens here."""

    def __init__(
        self,
        settings: RelaySettings,
        routes: RouteTable,
        lines: Mapping[str, Line],
        memory: Memory,
        flights: Flights,
        read_again: Callable[[], None],
        around: Surroundings,
    ) -> None:
        """`read_again` is called when lanes that were parked may have something to read."""
        self._settings = settings
        self._routes = routes
        self._unrouted_types: Recent[str] = Recent(REMEMBERED_TYPES)
        self._lines = lines
        self._holdings, self._chains, self._ledger = memory
        self._lane_of = self._chains.lane_of
        self._flights = flights
        self._read_again = read_again
        self._observer, self._clock, self._dice = around
        # Full jitter: the retries of many aggregates should not meet again.
        self._backoff = Backoff(
            first_seconds=settings.backoff_first_seconds,
            cap_seconds=settings.backoff_cap_seconds,
            jitter=1.0,
        )

    def take_up(self, page: Sequence[StoredEvent]) -> None:
        """Start what a read returned."""
        for head in self._chains.admit(page):
            self._start(head)

    def look_again(self) -> None:
        """Buckets were won: there may be something to read."""
        self._read_again()

    def pump(self) -> None:
        """Room was made: let every line look for work."""
        for line in self._lines.values():
            line.wake()

    def room(self) -> int:
        """How many more events may leave: what is in flight or unsettled at a crash is repeated."""
        return max(
            0, self._settings.unsettled_limit - self._ledger.unsettled - self._flights.entries
        )

    def reported(self, shipment: Shipment, destination: str, result: DeliveryResult) -> None:
        """One destination's answer for an event; the last one decides its fate."""
        if shipment.reported(destination, result):
            self._start(self._conclude(shipment))

    def probing(self, destination: str, events: int) -> None:
        """Bring the oldest events that wait for a destination, to see whether it is back."""
        self._chains.unpark(self._chains.first_waiting_for(destination, events))
        self._read_again()

    def recovered(self, destination: str) -> None:
        """Whatever waited for a destination may go."""
        self._chains.unpark(self._chains.waiting_for(destination))
        self._read_again()

    def withdraw(self, holdings: set[Holding]) -> None:
        """Take back what has not left yet of these buckets; what is in flight comes back later."""
        for name, line in self._lines.items():
            for shipment in line.withdraw(holdings):
                self.reported(shipment, name, _WITHDRAWN)

    def forget(self, lost: Sequence[Holding]) -> None:
        """These buckets are somebody else's now."""
        self.withdraw(set(lost))
        self._chains.forget_parked({holding.bucket for holding in lost})

    def settled(self, seq: int) -> None:
        """An accepted row is marked."""
        self._ledger.settled(seq).open -= 1

    def written(self, seq: int, trouble: Trouble) -> None:
        """What there was to say about an unpublished row is written: its lane may go on, or
        waits for its next attempt."""
        if not self._ledger.written(seq, trouble):
            return
        trouble.holding.open -= 1
        failure = trouble.failure
        if trouble.holding.lost or failure is None or failure.dead:
            self._chains.unpark((trouble.lane,))
            self._read_again()
        else:
            self._park_for(trouble.lane, seq, failure.delay_seconds)

    def _start(self, event: StoredEvent | None) -> None:
        # A loop, not a recursion: a chain of events that need no sending may be long.
        while event is not None:
            event = self._begin(event)

    def _begin(self, event: StoredEvent) -> StoredEvent | None:
        """Hand an event to its lines. Returns its successor if nothing was left to be sent."""
        holding = self._holdings.get(event.bucket)
        if holding is None or not holding.active:
            self._chains.drop(self._lane_of(event))
            return None
        now = self._clock()
        if event.due_at > now:
            self._park_for(self._lane_of(event), event.seq, event.due_at - now)
            return None
        route = self._routes.find(event.event_type, event.aggregate_type)
        if route is None:
            return self._unrouted(event, holding)
        return self._hand_over(event, holding, route)

    def _hand_over(self, event: StoredEvent, holding: Holding, route: Route) -> StoredEvent | None:
        had = event.delivered_to
        missing = route.to if not had else [name for name in route.to if name not in had]
        shipment = Shipment(event, route, holding, len(missing))
        holding.open += 1
        for name in missing:
            refusal = self._lines[name].offer(shipment, route.envelope)
            if refusal is not None:
                shipment.reported(name, refusal)
        return self._conclude(shipment) if shipment.awaited == 0 else None

    def _unrouted(self, event: StoredEvent, holding: Holding) -> StoredEvent | None:
        self._tell_unrouted(event)
        match self._settings.on_unrouted:
            case "hold":
                # Its aggregate waits too: passing over it would break the order for good.
                until = self._clock() + LOOK_AGAIN_SECONDS * (0.5 + self._dice() / 2)
                self._park(self._lane_of(event), Waiting.ROUTE, event.seq, until)
                return None
            case "dead":
                holding.open += 1
                self._bury(event, holding, None, event.attempts, _no_route(event))
                return None
            case "drop":
                self._observer.dropped(1)
                holding.open += 1
                return self._published(event, holding)

    def _tell_unrouted(self, event: StoredEvent) -> None:
        """Say once for each type what becomes of its events; nobody else sees that they wait."""
        if event.event_type not in self._unrouted_types:
            self._unrouted_types.add(event.event_type)
            log.warning(
                "no route for events of this type",
                extra={
                    "event_type": event.event_type,
                    "event_id": event.id,
                    "on_unrouted": self._settings.on_unrouted,
                },
            )

    def _conclude(self, shipment: Shipment) -> StoredEvent | None:
        """Carry out the verdict; returns the event that may start now."""
        event, holding = shipment.event, shipment.holding
        verdict = judge(
            shipment.results,
            event.attempts,
            self._settings.max_attempts,
            self._backoff,
            self._dice,
        )
        match verdict:
            case Published():
                return self._published(event, holding)
            case TryAgain(attempts=attempts, delay_seconds=delay, error=error):
                failure = FailureMark(
                    event.seq, holding.bucket, holding.epoch, attempts, delay, error, dead=False
                )
                self._trouble(event, holding, _delivered(shipment), failure)
            case Bury(attempts=attempts, error=error):
                self._exhausted(shipment, attempts, error)
            case HoldBack():
                self._hold_back(shipment, verdict)
        return None

    def _published(self, event: StoredEvent, holding: Holding) -> StoredEvent | None:
        self._ledger.publish(event.seq, holding)
        if holding.active:
            return self._chains.advance(self._lane_of(event))
        self._chains.drop(self._lane_of(event))
        return None

    def _exhausted(self, shipment: Shipment, attempts: int, error: str) -> None:
        event, holding = shipment.event, shipment.holding
        match shipment.route.on_exhausted:
            case "skip":
                self._bury(event, holding, _delivered(shipment), attempts, error)
            case "block":
                # Not dead: its row has to stay the first of its aggregate, for any later owner too.
                log.error("event blocks its aggregate", extra=_told(event, error))
                failure = FailureMark(
                    event.seq, holding.bucket, holding.epoch, attempts, FOREVER, error, dead=False
                )
                self._trouble(event, holding, _delivered(shipment), failure)

    def _bury(
        self,
        event: StoredEvent,
        holding: Holding,
        delivered: DeliveryMark | None,
        attempts: int,
        error: str,
    ) -> None:
        self._observer.died(1)
        log.error("event given up", extra=_told(event, error))
        failure = FailureMark(
            event.seq, holding.bucket, holding.epoch, attempts, 0.0, error, dead=True
        )
        self._trouble(event, holding, delivered, failure)

    def _trouble(
        self,
        event: StoredEvent,
        holding: Holding,
        delivered: DeliveryMark | None,
        failure: FailureMark | None,
    ) -> None:
        lane = self._lane_of(event)
        self._ledger.trouble(event.seq, Trouble(lane, holding, delivered, failure))
        self._park(lane, Waiting.MARK, event.seq, FOREVER)

    def _hold_back(self, shipment: Shipment, verdict: HoldBack) -> None:
        event, holding = shipment.event, shipment.holding
        delivered = _delivered(shipment)
        if delivered is not None:
            self._trouble(event, holding, delivered, None)
            return
        holding.open -= 1
        destination = verdict.destination
        if destination and holding.active and self._lines[destination].down:
            self._park(self._lane_of(event), Waiting.DESTINATION, event.seq, FOREVER, destination)
        elif verdict.delay_seconds:
            self._park_for(self._lane_of(event), event.seq, verdict.delay_seconds)
        else:
            self._chains.drop(self._lane_of(event))

    def _park_for(self, lane: int, seq: int, seconds: float) -> None:
        until = self._clock() + min(seconds, LOOK_AGAIN_SECONDS)
        self._park(lane, Waiting.BACKOFF, seq, until)

    def _park(self, lane: int, why: Waiting, seq: int, until: float, destination: str = "") -> None:
        self._chains.park(lane, Parked(why, until, seq, destination))


_WITHDRAWN = Away(paused=False)


def _delivered(shipment: Shipment) -> DeliveryMark | None:
    names = tuple(name for name, said in shipment.results if isinstance(said, Accepted))
    return DeliveryMark(shipment.event.seq, names) if names else None


def _told(event: StoredEvent, error: str) -> dict[str, object]:
    return {
        "event_id": event.id,
        "event_type": event.event_type,
        **trace_facts(event.traceparent),
        "error": error,
        "payload": Payload(event.payload),
    }


def _no_route(event: StoredEvent) -> str:
    return clean_error(
        f"no route matches events of type {event.event_type!r} of aggregates of type "
        f"{event.aggregate_type!r}; add one to [[relay.routes]] and requeue the event"
    )
