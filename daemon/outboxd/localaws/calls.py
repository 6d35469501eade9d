"""Counts the calls that clients have made, whatever became of them."""

import msgspec

from outboxd.localaws.faults import Target


class CallCount(msgspec.Struct, frozen=True):
    """How often an operation was called on a queue (or a topic, or an event bus: `queue` is its
    name); `queue` is None where it is about none of them."""

    service: str
    operation: str
    region: str
    queue: str | None
    count: int


class Calls:
    """Counts since the start, or since they were last set to zero."""

    def __init__(self) -> None:
        self._counts: dict[Target, int] = {}

    def add(self, target: Target) -> None:
        """One more; a call that is refused or hit by a fault counts as well."""
        self._counts[target] = self._counts.get(target, 0) + 1

    def counts(self) -> list[CallCount]:
        """By service, operation, region and queue."""
        order = sorted(self._counts, key=lambda target: (*target[:3], target.queue or ""))
        return [CallCount(*target, self._counts[target]) for target in order]

    def reset(self) -> None:
        self._counts.clear()
