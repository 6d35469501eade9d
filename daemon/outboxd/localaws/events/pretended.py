"""The answers to calls that were swallowed."""

from typing import Any

from outboxd.localaws.ids import new_id


def entry() -> dict[str, Any]:
    """What PutEvents answers for an event that it accepted."""
    return {"EventId": new_id()}
