"""Rules between the settings of the relay, and between them and the queues."""

import json
from collections.abc import Iterator

from outboxd.core.destinations import SnsTarget, SqsTarget, destination_problem, target_of
from outboxd.core.places import Place
from outboxd.core.settings import RelaySettings, RouteSettings, Settings

_RELAY = Place("relay")


def relay_problems(settings: Settings) -> Iterator[str]:
    """What cannot work about the relay and its routes."""
    relay = settings.relay
    if relay is None:
        return
    yield from _routes(relay, settings)
    yield from _leases(relay, settings)
    if relay.poll_min_seconds > relay.poll_max_seconds:
        yield (
            f"[relay] poll_min_seconds: {relay.poll_min_seconds:g} is above "
            f"poll_max_seconds ({relay.poll_max_seconds:g})"
        )
    if relay.wake_up and relay.sleep_max_seconds < relay.poll_max_seconds:
        yield (
            f"[relay] sleep_max_seconds: {relay.sleep_max_seconds:g} is below poll_max_seconds "
            f"({relay.poll_max_seconds:g}), so a relay that is woken by commits would look more "
            "often than one that is not"
        )
    if relay.backoff_first_seconds > relay.backoff_cap_seconds:
        yield (
            f"[relay] backoff_first_seconds: {relay.backoff_first_seconds:g} is above "
            f"backoff_cap_seconds ({relay.backoff_cap_seconds:g})"
        )


def _routes(relay: RelaySettings, settings: Settings) -> Iterator[str]:
    if not relay.routes:
        # Whatever on_unrouted says: an outbox of which nothing is ever published is a mistake.
        yield "[relay] routes: none, so no event is ever published; add [[relay.routes]]"
    for number, route in enumerate(relay.routes, start=1):
        place = _RELAY.subtable("routes").element(number).at("to")
        for destination in route.to:
            if problem := destination_problem(destination, settings):
                yield f"{place}: {problem}"
        yield from _repeated(route, place)
        yield from _order(route, _RELAY.subtable("routes").element(number), settings)


def _repeated(route: RouteSettings, place: Place) -> Iterator[str]:
    for destination in dict.fromkeys(route.to):
        if route.to.count(destination) > 1:
            yield f"{place}: names {json.dumps(destination)} twice, but publishes there once"


def _order(route: RouteSettings, place: Place, settings: Settings) -> Iterator[str]:
    if route.ordering == "aggregate":
        return
    if route.on_exhausted == "block":
        yield (
            f'{place.at("on_exhausted")}: "block" keeps back the later events of an aggregate, but '
            'with ordering = "none" none of them waits; take "skip", or ordering = "aggregate"'
        )
    for destination in route.to:
        if _keeps_order(destination, settings):
            yield (
                f'{place.at("ordering")}: "none" publishes events of one aggregate in any order, '
                f"and {json.dumps(destination)} would keep it for its readers; leave it out"
            )


def _keeps_order(destination: str, settings: Settings) -> bool:
    """Whether it is a FIFO queue or topic; what is no destination at all is told by other rules."""
    if destination_problem(destination, settings) is not None:
        return False
    target = target_of(destination, settings)
    return isinstance(target, SqsTarget | SnsTarget) and target.fifo


def _leases(relay: RelaySettings, settings: Settings) -> Iterator[str]:
    if relay.renew_seconds * 4 > relay.lease_seconds:
        yield (
            "[relay] lease_seconds: must be at least 4 x renew_seconds "
            f"({relay.renew_seconds * 4:g} s), or a slow database takes a healthy relay's events "
            "away from it"
        )
    publish_seconds = longest_call_seconds(settings)
    if publish_seconds >= relay.lease_seconds:
        yield (
            "[relay] lease_seconds: must be above the longest publish call, [aws] "
            f"connect_timeout_seconds + read_timeout_seconds = {publish_seconds:g} s, or another "
            "relay may publish the same events meanwhile, out of order"
        )


def longest_call_seconds(settings: Settings) -> float:
    """How long a call of the relay to AWS may take; it is a single try."""
    return settings.aws.connect_timeout_seconds + settings.aws.read_timeout_seconds
