"""The requests of EventBridge, as they are decoded; absent and empty members are alike."""

from typing import Annotated

import msgspec

Whole = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


class _Wire(msgspec.Struct, frozen=True, rename="pascal", omit_defaults=True):
    pass


class CreateEventBus(_Wire, frozen=True):
    name: str = ""
    description: str | None = None


class NamedBus(_Wire, frozen=True):
    """DeleteEventBus, DescribeEventBus."""

    name: str = ""


class ListEventBuses(_Wire, frozen=True):
    name_prefix: str = ""
    next_token: str | None = None
    limit: Whole | None = None


class PutRule(_Wire, frozen=True):
    name: str = ""
    event_bus_name: str | None = None
    event_pattern: str = ""
    schedule_expression: str = ""
    state: str = "ENABLED"
    description: str | None = None
    role_arn: str | None = None


class NamedRule(_Wire, frozen=True):
    """DeleteRule, DescribeRule, EnableRule, DisableRule."""

    name: str = ""
    event_bus_name: str | None = None


class ListRules(_Wire, frozen=True):
    name_prefix: str = ""
    event_bus_name: str | None = None
    next_token: str | None = None
    limit: Whole | None = None


class InputTransformer(_Wire, frozen=True):
    input_paths_map: dict[str, str] = {}
    input_template: str = ""


class SqsParameters(_Wire, frozen=True):
    message_group_id: str | None = None


class DeadLetterConfig(_Wire, frozen=True):
    arn: str | None = None


class RetryPolicy(_Wire, frozen=True):
    maximum_retry_attempts: Whole | None = None
    maximum_event_age_in_seconds: Whole | None = None


class Target(_Wire, frozen=True):
    """A queue that a rule sends to. What is for other kinds of targets is not read."""

    id: str = ""
    arn: str = ""
    role_arn: str | None = None
    input: str | None = None
    input_path: str | None = None
    input_transformer: InputTransformer | None = None
    sqs_parameters: SqsParameters | None = None
    dead_letter_config: DeadLetterConfig | None = None
    retry_policy: RetryPolicy | None = None


class PutTargets(_Wire, frozen=True):
    rule: str = ""
    event_bus_name: str | None = None
    targets: list[Target] = []


class RemoveTargets(_Wire, frozen=True):
    rule: str = ""
    event_bus_name: str | None = None
    ids: list[str] = []


class ListTargetsByRule(_Wire, frozen=True):
    rule: str = ""
    event_bus_name: str | None = None
    next_token: str | None = None
    limit: Whole | None = None


class Entry(_Wire, frozen=True):
    """One event of PutEvents; `time` is in seconds since the epoch."""

    time: float | None = None
    source: str = ""
    resources: list[str] = []
    detail_type: str = ""
    detail: str = ""
    event_bus_name: str | None = None
    trace_header: str | None = None


class PutEvents(_Wire, frozen=True):
    entries: list[Entry] = []
    endpoint_id: str | None = None
