"""Every operation of EventBridge: how its request is read and what it does."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from outboxd.localaws.events import requests
from outboxd.localaws.events.call import Call
from outboxd.localaws.events.operations import buses, put_events, rules, targets

Request = TypeVar("Request", bound=msgspec.Struct)


class Operation(NamedTuple):
    decode: Callable[[bytes], msgspec.Struct]
    act: Callable[[Call, Any], msgspec.Struct | None]


def _operation(
    request: type[Request], act: Callable[[Call, Request], msgspec.Struct | None]
) -> Operation:
    return Operation(msgspec.json.Decoder(request).decode, act)


OPERATIONS = {
    "CreateEventBus": _operation(requests.CreateEventBus, buses.create_event_bus),
    "DeleteEventBus": _operation(requests.NamedBus, buses.delete_event_bus),
    "DescribeEventBus": _operation(requests.NamedBus, buses.describe_event_bus),
    "ListEventBuses": _operation(requests.ListEventBuses, buses.list_event_buses),
    "PutRule": _operation(requests.PutRule, rules.put_rule),
    "DeleteRule": _operation(requests.NamedRule, rules.delete_rule),
    "DescribeRule": _operation(requests.NamedRule, rules.describe_rule),
    "ListRules": _operation(requests.ListRules, rules.list_rules),
    "EnableRule": _operation(requests.NamedRule, rules.enable_rule),
    "DisableRule": _operation(requests.NamedRule, rules.disable_rule),
    "PutTargets": _operation(requests.PutTargets, targets.put_targets),
    "RemoveTargets": _operation(requests.RemoveTargets, targets.remove_targets),
    "ListTargetsByRule": _operation(requests.ListTargetsByRule, targets.list_targets_by_rule),
    "PutEvents": _operation(requests.PutEvents, put_events.put_events),
}
