"""ARNs of event buses and rules."""

import re

from outboxd.localaws.sqs.arns import ACCOUNT

DEFAULT_BUS = "default"

_BUS_ARN = re.compile(r"arn:aws[\w-]*:events:([a-z0-9-]+):(\d{12}):event-bus/(.+)\Z")


def bus_arn(region: str, bus: str) -> str:
    return f"arn:aws:events:{region}:{ACCOUNT}:event-bus/{bus}"


def rule_arn(region: str, bus: str, rule: str) -> str:
    """Rules of the default bus do not name it."""
    path = rule if bus == DEFAULT_BUS else f"{bus}/{rule}"
    return f"arn:aws:events:{region}:{ACCOUNT}:rule/{path}"


def bus_place(name_or_arn: str | None, region: str) -> tuple[str, str] | None:
    """Region and name of the bus that is meant; None for a bus of another account."""
    if not name_or_arn:
        return region, DEFAULT_BUS
    arn = _BUS_ARN.match(name_or_arn)
    if arn is None:
        return region, name_or_arn
    return (arn[1], arn[3]) if arn[2] == ACCOUNT else None


def bus_name(name_or_arn: str | None) -> str:
    """The name that a request speaks of."""
    arn = _BUS_ARN.match(name_or_arn or "")
    return (name_or_arn or DEFAULT_BUS) if arn is None else arn[3]
