"""The answers to calls that were swallowed."""

from typing import Any

from outboxd.localaws.faults import Target
from outboxd.localaws.ids import new_id

_SEQUENCE = "10000000000000000000"


def result(target: Target) -> dict[str, Any] | None:
    """The result of a call that is no batch, as JSON; None is one without."""
    return _published(target) if target.operation == "Publish" else None


def batch_entry(target: Target, entry: dict[str, Any]) -> dict[str, Any]:
    """A batch entry's place among the successful ones."""
    return {**_published(target), "Id": entry["Id"]}


def _published(target: Target) -> dict[str, Any]:
    published = {"MessageId": new_id()}
    if target.queue is not None and target.queue.endswith(".fifo"):
        published["SequenceNumber"] = _SEQUENCE
    return published
