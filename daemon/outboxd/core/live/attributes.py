"""What SQS says of a queue, which is text for everything, as what it means."""

import json
from typing import Any

from outboxd.core.live.facts import Attributes


def number(attributes: Attributes, name: str, default: int = 0) -> int:
    """An attribute that is a number; `default` if it is not told, or no number."""
    return whole(attributes.get(name, ""), default)


def whole(text: str, default: int = 0) -> int:
    """The text as a number, or `default`."""
    return int(text) if text.isdecimal() else default


def document(text: str | None) -> dict[str, Any]:
    """An attribute that holds JSON; empty for what is no object, as other servers may tell."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def days(seconds: int) -> str:
    """So many seconds, as a number of days."""
    return f"{seconds / 86_400:.3g}"
