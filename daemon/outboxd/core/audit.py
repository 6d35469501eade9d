"""Who changed the outbox by hand, when, and how: what the audit remembers."""

from enum import StrEnum
from typing import Any

import msgspec


class Command(StrEnum):
    """What an operator can do to events."""

    REQUEUE = "requeue"
    DISCARD = "discard"
    PRUNE = "prune"


class Author(msgspec.Struct, frozen=True):
    """Who runs a command, why, and on what: the ids and filters of the command line."""

    operator: str
    reason: str | None
    selection: dict[str, Any]

    @property
    def note(self) -> str:
        """What a discarded event says of itself."""
        return f"discarded by {self.operator}" + (f": {self.reason}" if self.reason else "")


class Run(msgspec.Struct, frozen=True):
    """One run of a command, its batches added up; times are Unix seconds."""

    run: str
    began_at: float
    ended_at: float
    role: str
    operator: str
    command: str
    reason: str | None
    selection: dict[str, Any]
    events: int
    first_seq: int
    last_seq: int
