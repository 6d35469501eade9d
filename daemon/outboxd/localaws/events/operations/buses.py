"""Event buses: create, describe, list and delete."""

import re

from outboxd.localaws.events import requests, responses
from outboxd.localaws.events.arns import DEFAULT_BUS
from outboxd.localaws.events.bus import Bus
from outboxd.localaws.events.call import Call
from outboxd.localaws.events.errors import constraint, validation
from outboxd.localaws.events.operations.listing import listed

_NAME = re.compile(r"[/.\-_A-Za-z0-9]{1,256}\Z")


def create_event_bus(call: Call, request: requests.CreateEventBus) -> responses.EventBusArn:
    name = request.name
    if not _NAME.match(name):
        raise constraint(
            name, "name", r"Member must satisfy regular expression pattern: [/\.\-_A-Za-z0-9]+"
        )
    if "/" in name:
        # Only the buses of partners have one in their names.
        raise validation("Event bus name must not contain '/'.")
    bus = call.registry.create(call.region, name, request.description, call.now)
    return responses.EventBusArn(bus.arn, bus.description)


def delete_event_bus(call: Call, request: requests.NamedBus) -> None:
    """Deleting what is not there succeeds, as in AWS."""
    bus = call.registry.find(request.name, call.region)
    if bus is None:
        return
    if bus.name == DEFAULT_BUS:
        raise validation("Cannot delete event bus default.")
    if bus.rules:
        raise validation(f"Event bus {bus.name} can't be deleted since it has rules.")
    call.registry.delete(bus)


def describe_event_bus(call: Call, request: requests.NamedBus) -> responses.EventBus:
    return _described(call.registry.get(request.name, call.region))


def list_event_buses(call: Call, request: requests.ListEventBuses) -> responses.EventBuses:
    buses = [
        bus for bus in call.registry.buses(call.region) if bus.name.startswith(request.name_prefix)
    ]
    shown, token = listed(buses, lambda bus: bus.name, request.limit, request.next_token)
    return responses.EventBuses([_described(bus) for bus in shown], token)


def _described(bus: Bus) -> responses.EventBus:
    return responses.EventBus(
        name=bus.name,
        arn=bus.arn,
        description=bus.description,
        creation_time=bus.created_at,
        last_modified_time=bus.created_at,
    )
