"""Event buses with their rules."""

import msgspec

from outboxd.localaws.events.requests import Target
from outboxd.localaws.matching.pattern import Pattern

ENABLED, DISABLED = "ENABLED", "DISABLED"
STATES = (ENABLED, DISABLED, "ENABLED_WITH_ALL_CLOUDTRAIL_MANAGEMENT_EVENTS")


class Rule(msgspec.Struct, kw_only=True):
    """Which events go to which targets; `targets` are by their id, in the order of their making."""

    name: str
    arn: str
    pattern: Pattern
    pattern_text: str
    state: str
    description: str | None
    role_arn: str | None
    targets: dict[str, Target]

    @property
    def enabled(self) -> bool:
        return self.state != DISABLED


class Bus(msgspec.Struct, kw_only=True):
    """`rules` are by their name."""

    region: str
    name: str
    arn: str
    description: str | None
    created_at: float
    rules: dict[str, Rule]
