"""What an event waits in line for: its aggregate or, where order does not matter, itself alone.

Everything that moves, waits or blocks in the relay is a lane, so that there is one set of rules for
both.
"""

from collections.abc import Callable

from outboxd.core.outbox import BUCKETS, StoredEvent
from outboxd.core.routes import RouteTable

_ALONE = 1 << 80
"""Beyond every hash of an aggregate, which has 64 bits."""


def lane_of(event: StoredEvent, *, ordered: bool) -> int:
    """The lane of an aggregate is its key; that of a single event has the bucket in the same low
    bits, and tells its row."""
    return event.key if ordered else _ALONE + event.seq * BUCKETS + event.bucket


def row_alone_in(lane: int) -> int | None:
    """The row (`seq`) that a lane is for; None when it is an aggregate's."""
    return (lane - _ALONE) // BUCKETS if lane >= _ALONE else None


def lanes_by(routes: RouteTable) -> Callable[[StoredEvent], int]:
    """How to find the lane of an event. One without a route keeps to its aggregate's order, which
    the route that it waits for may want."""

    def lane(event: StoredEvent) -> int:
        route = routes.find(event.event_type, event.aggregate_type)
        return lane_of(event, ordered=route is None or route.ordering == "aggregate")

    return lane
