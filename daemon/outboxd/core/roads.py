"""Which queues the relay's destinations lead to, directly or through a topic or a bus."""

from collections.abc import Iterator

from outboxd.core.settings import Settings


def queues_behind(settings: Settings) -> dict[str, frozenset[str]]:
    """For each destination with a road to a queue, the tables of [queues] at its end: those that
    `outboxd provision` subscribes, whatever of the events their filters let through."""
    routes = settings.relay.routes if settings.relay is not None else ()
    behind = {
        destination: frozenset({destination.removeprefix("sqs:")})
        for route in routes
        for destination in route.to
        if destination.startswith("sqs:")
    }
    return behind | dict(_fan_outs(settings))


def _fan_outs(settings: Settings) -> Iterator[tuple[str, frozenset[str]]]:
    for name, topic in settings.destinations.sns.items():
        yield f"sns:{name}", frozenset(each.queue for each in topic.subscriptions)
    for name, bus in settings.destinations.eventbridge.items():
        queues = (target.removeprefix("sqs:") for rule in bus.rules for target in rule.to)
        yield f"eventbridge:{name}", frozenset(queues)
