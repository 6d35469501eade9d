"""The facts that a consumer pool tells of itself, for metrics."""

from enum import StrEnum
from typing import Protocol

from outboxd.core.errors import OutageKind
from outboxd.core.judging import RetryCause
from outboxd.core.outcomes import DeadReason
from outboxd.ports.queue import Depth


class Processed(StrEnum):
    """How one handler's share of one delivery ended."""

    OK = "ok"
    DUPLICATE = "duplicate"
    RETRY = "retry"
    DEAD = "dead"
    POISON = "poison"
    NO_HANDLER = "no_handler"
    LOST = "lost"


class ConsumerObserver(Protocol):
    """Told many times for every message, so each call is cheap. `handler` is a configured name, or
    empty when the message never came as far as a handler."""

    def received(self, count: int, redelivered: int) -> None:
        """A receive was answered with `count` messages, so many of them not for the first time."""

    def receive_failed(self, kind: OutageKind) -> None:
        """A receive was not answered."""

    def waited(self, seconds: float) -> None:
        """From being sent to its first handler's first call, a message waited that long."""

    def started(self, handler: str) -> None:
        """A handler's call begins."""

    def finished(self, handler: str, seconds: float, ok: bool) -> None:
        """A handler's call is over."""

    def processed(self, handler: str, outcome: Processed) -> None:
        """A delivery has ended for this handler."""

    def handled(self, handler: str, seconds_since_occurred: float) -> None:
        """A handler took effect; negative when clocks disagree."""

    def retried(self, handler: str, cause: RetryCause) -> None:
        """A message is given back for this handler's sake."""

    def dead_lettered(self, handler: str, reason: DeadReason) -> None:
        """A dead letter for this handler's sake was accepted."""

    def poison(self, reason: DeadReason) -> None:
        """A message is rejected before it came to a handler."""

    def delete_failed(self, reason: str) -> None:
        """A delete was not carried out; `reason` is an OutageKind or "refused"."""

    def sampled(self, depth: Depth) -> None:
        """The queue was counted."""
