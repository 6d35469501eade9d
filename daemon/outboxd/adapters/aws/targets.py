"""What the relay's routes name in one service, and how many connections that takes."""

from collections.abc import Sized
from typing import TypeVar

from outboxd.core.destinations import EventBridgeTarget, SnsTarget, SqsTarget, target_of
from outboxd.core.routes import RouteTable
from outboxd.core.settings import RelaySettings, Settings

T = TypeVar("T", SqsTarget, SnsTarget, EventBridgeTarget)


def targets_of(kind: type[T], settings: Settings) -> dict[str, T]:
    """Every queue, topic or bus that the routes name, by its name there."""
    if settings.relay is None:
        return {}
    return {
        name: target
        for name in RouteTable(settings.relay.routes).destinations
        if isinstance(target := target_of(name, settings), kind)
    }


def connections_for(targets: Sized, relay: RelaySettings) -> int:
    """One for each pack that may be in flight, so that none waits for another's connection."""
    return relay.packs_in_flight * len(targets)
