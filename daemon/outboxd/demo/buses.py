"""The event buses of a configuration, deleted from a service that is not ours and stays."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from outboxd.adapters.aws.outages import AWS_ERRORS, outage
from outboxd.adapters.eventbridge.client import events_client
from outboxd.core.errors import OutageKind
from outboxd.core.provisioning_fan_out import WantedRule, target_id, wanted_fan_out
from outboxd.core.settings import Settings

if TYPE_CHECKING:
    from types_boto3_events import EventBridgeClient


def delete_buses(settings: Settings) -> None:
    """Delete rules and buses, if they are there. Raises Unavailable when their service does not do
    as it is asked."""
    wanted = wanted_fan_out(settings)
    client: EventBridgeClient = events_client(settings.aws, connections=1)
    for rule in wanted.rules:
        with _if_there(f"deleting rule {rule.name}"):
            _delete_rule(client, rule)
    for bus in wanted.buses:
        with _if_there(f"deleting event bus {bus.name}"):
            client.delete_event_bus(Name=bus.name)


def _delete_rule(client: "EventBridgeClient", rule: WantedRule) -> None:
    """A rule that still has targets cannot be deleted."""
    client.remove_targets(
        Rule=rule.rule,
        EventBusName=rule.bus,
        Ids=[target_id(queue) for queue in rule.targets],
    )
    client.delete_rule(Name=rule.rule, EventBusName=rule.bus)


@contextmanager
def _if_there(doing: str) -> Iterator[None]:
    try:
        yield
    except AWS_ERRORS as error:
        why = outage(error, doing)
        if why.kind is not OutageKind.MISSING:
            raise why from error
