"""An event on its way, and its part for one destination."""

from typing import NamedTuple

from outboxd.core.holdings import Holding
from outboxd.core.outbox import StoredEvent
from outboxd.core.relay_outcomes import DeliveryResult
from outboxd.core.routes import Route
from outboxd.ports.destination import Entry


class Shipment:
    """One event that was taken up, with what its destinations have said so far."""

    __slots__ = ("awaited", "event", "holding", "results", "route")

    def __init__(self, event: StoredEvent, route: Route, holding: Holding, awaited: int) -> None:
        self.event = event
        self.route = route
        self.holding = holding
        self.awaited = awaited
        self.results: list[tuple[str, DeliveryResult]] = []

    def reported(self, destination: str, result: DeliveryResult) -> bool:
        """One destination's answer; returns whether all have answered."""
        self.results.append((destination, result))
        self.awaited -= 1
        return self.awaited == 0


class Parcel(NamedTuple):
    """A shipment's entry for one destination."""

    shipment: Shipment
    entry: Entry
