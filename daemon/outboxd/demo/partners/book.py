"""What the partners have been asked, what they have accepted, and how often."""

from collections import deque
from enum import StrEnum

from msgspec import Struct

REQUESTS_KEPT = 10_000
"""Of each single request; the counts are of all of them."""


class Service(StrEnum):
    """The partners that are played."""

    COURIER = "courier"
    WHATSAPP = "whatsapp"
    PUSH = "push"


class Request(Struct, frozen=True):
    """One request as it ended; status 0 is a connection that was cut."""

    service: str
    key: str
    status: int


class Accepted(Struct):
    """What was accepted under a key, and how often it was asked for since, with what answer."""

    service: str
    key: str
    content: dict[str, object]
    answer: dict[str, object]
    repeated: int = 0


class Counts(Struct):
    """Requests to one service: `accepted` are new, `repeated` had been accepted before, and
    `refused` were wrong. `faulted` were met by a fault, whatever else became of them. `orders` is
    of how many orders those that were accepted are."""

    requests: int = 0
    accepted: int = 0
    orders: int = 0
    repeated: int = 0
    refused: int = 0
    faulted: int = 0


class Book:
    """Everything since the start; used from one event loop only."""

    def __init__(self) -> None:
        self.counts = {service: Counts() for service in Service}
        self.requests: deque[Request] = deque(maxlen=REQUESTS_KEPT)
        self._accepted: dict[tuple[str, str], Accepted] = {}
        self._orders: dict[str, set[object]] = {service: set() for service in Service}

    def find(self, service: Service, key: str) -> Accepted | None:
        """What was accepted under this key."""
        return self._accepted.get((service, key))

    def accept(self, accepted: Accepted) -> None:
        """Remember it for ever: a service that forgets keys would do things twice."""
        self._accepted[accepted.service, accepted.key] = accepted
        orders = self._orders[accepted.service]
        orders.add(accepted.content["order_id"])
        counts = self.counts[Service(accepted.service)]
        counts.accepted += 1
        counts.orders = len(orders)

    def accepted(self, service: str | None = None) -> list[Accepted]:
        """All that was accepted, oldest first."""
        return [each for each in self._accepted.values() if service in (None, each.service)]
