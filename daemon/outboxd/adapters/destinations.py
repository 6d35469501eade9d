"""Every destination that the routes name, each behind the same port."""

from outboxd.core.destinations import LogTarget, MemoryTarget, target_of
from outboxd.core.routes import RouteTable
from outboxd.core.settings import Settings
from outboxd.ports.destination import Destination


def relay_destinations(settings: Settings) -> dict[str, Destination]:
    """The destinations by their names in the routes, in the order of those.

    Raises SettingsError for a name that means nothing. A service that no route names is not
    loaded: its SDK model alone takes some megabytes.
    """
    if settings.relay is None:
        return {}
    names = RouteTable(settings.relay.routes).destinations
    kinds = {name.partition(":")[0] for name in names}
    found: dict[str, Destination] = {}
    if "sqs" in kinds:
        from outboxd.adapters.sqs.publisher import sqs_destinations

        found |= sqs_destinations(settings)
    if "sns" in kinds:
        from outboxd.adapters.sns.publisher import sns_destinations

        found |= sns_destinations(settings)
    if "eventbridge" in kinds:
        from outboxd.adapters.eventbridge.publisher import eventbridge_destinations

        found |= eventbridge_destinations(settings)
    source = settings.relay.cloudevents_source
    return {name: found[name] if name in found else _here(name, settings, source) for name in names}


def _here(name: str, settings: Settings, cloudevents_source: str) -> Destination:
    """A destination in this process."""
    match target_of(name, settings):
        case LogTarget():
            from outboxd.adapters.log_destination import LogDestination

            return LogDestination(name, cloudevents_source=cloudevents_source)
        case MemoryTarget():
            from outboxd.adapters.memory_destination import MemoryDestination

            return MemoryDestination(cloudevents_source=cloudevents_source)
        case other:
            raise AssertionError(f"{other} is a service, and was found before")
