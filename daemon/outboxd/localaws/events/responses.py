"""The responses of EventBridge; members that are None are left out."""

import msgspec

from outboxd.localaws.events.requests import Target


class _Wire(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    pass


class EventBusArn(_Wire, frozen=True):
    event_bus_arn: str
    description: str | None = None


class EventBus(_Wire, frozen=True, kw_only=True):
    name: str
    arn: str
    description: str | None = None
    creation_time: float
    last_modified_time: float


class EventBuses(_Wire, frozen=True):
    event_buses: list[EventBus]
    next_token: str | None = None


class RuleArn(_Wire, frozen=True):
    rule_arn: str


class Rule(_Wire, frozen=True, kw_only=True):
    """Of ListRules; DescribeRule also tells who made it."""

    name: str
    arn: str
    event_pattern: str
    state: str
    description: str | None = None
    role_arn: str | None = None
    event_bus_name: str
    created_by: str | None = None


class Rules(_Wire, frozen=True):
    rules: list[Rule]
    next_token: str | None = None


class FailedTarget(_Wire, frozen=True):
    target_id: str
    error_code: str
    error_message: str


class ChangedTargets(_Wire, frozen=True):
    """Of PutTargets and RemoveTargets."""

    failed_entry_count: int
    failed_entries: list[FailedTarget]


class Targets(_Wire, frozen=True):
    targets: list[Target]
    next_token: str | None = None


class PutEntry(_Wire, frozen=True):
    """An event that was accepted, or why it was not."""

    event_id: str | None = None
    error_code: str | None = None
    error_message: str | None = None


class PutEntries(_Wire, frozen=True):
    """In the order of the request."""

    failed_entry_count: int
    entries: list[PutEntry]
