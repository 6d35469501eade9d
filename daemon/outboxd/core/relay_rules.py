"""Rules between the settings of the relay, and between them and the queues."""

import json
from collections.abc import Iterator

from outboxd.core.expectations import suggestion
from outboxd.core.places import Place
from outboxd.core.settings import RelaySettings, RouteSettings, Settings

UNSUPPORTED_KINDS = ("sns", "eventbridge")

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
            if problem := _destination_problem(destination, settings):
                yield f"{place}: {problem}"
        yield from _repeated(route, place)


def _repeated(route: RouteSettings, place: Place) -> Iterator[str]:
    for destination in dict.fromkeys(route.to):
        if route.to.count(destination) > 1:
            yield f"{place}: names {json.dumps(destination)} twice, but publishes there once"


def _destination_problem(destination: str, settings: Settings) -> str | None:
    quoted = json.dumps(destination, ensure_ascii=False)
    kind, separator, name = destination.partition(":")
    if kind in UNSUPPORTED_KINDS and separator:
        return f"{quoted}: {kind} destinations are not supported by this version"
    if kind != "sqs" or not separator:
        offer = f'; did you mean "sqs:{destination}"?' if destination in settings.queues else ""
        return f'{quoted}: unknown destination; expected "sqs:<a table of [queues]>"{offer}'
    if name not in settings.queues:
        near = suggestion(destination, [f"sqs:{queue}" for queue in settings.queues])
        return f"{quoted}: there is no {Place('queues').subtable(name)}{near}"
    return None


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
    """How long a call of the relay to SQS may take; it is a single try."""
    return settings.aws.connect_timeout_seconds + settings.aws.read_timeout_seconds
