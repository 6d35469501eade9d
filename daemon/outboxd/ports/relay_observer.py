"""What the relay tells whoever counts."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from outboxd.core.errors import OutageKind
from outboxd.ports.outbox import Survey


class Stage(StrEnum):
    """The three parts of an event's way, each with its own duration; a metric's label."""

    READ = "read"
    SEND = "send"
    MARK = "mark"


class FailureKind(StrEnum):
    """How a destination failed one event; a metric's label."""

    REFUSED = "refused"
    FAULT = "fault"
    UNAVAILABLE = "unavailable"


class RelayObserver(Protocol):
    """Facts of the relay, in the past tense. Nothing here is called for each event."""

    def took(self, stage: Stage, seconds: float) -> None:
        """A read, a call to a destination or a batch of marks ended well."""

    def accepted(self, destination: str, ages_seconds: Sequence[float]) -> None:
        """A destination accepted events of one pack; one age since its insert for each of them."""

    def failed(self, destination: str, kind: FailureKind, events: int) -> None:
        """A destination did not take some events of a pack."""

    def paused(self, destination: str, kind: OutageKind) -> None:
        """A call as a whole failed; the destination is left alone for a while."""

    def recovered(self, destination: str) -> None:
        """A destination takes events again."""

    def uncertain(self, destination: str, events: int) -> None:
        """A call got no answer: these events may have been accepted, and are sent again."""

    def died(self, events: int) -> None:
        """Events were given up, each with its reason in its row."""

    def dropped(self, events: int) -> None:
        """Events without a route were marked as published, as configured."""

    def mismatched(self, rows: int) -> None:
        """Rows stayed pending although they were marked as published."""

    def lost_buckets(self, count: int) -> None:
        """Leases ran out, or someone else took their buckets."""

    def database_failed(self, doing: str) -> None:
        """The database could not be used; `doing` is one of a few constants."""

    def woken(self) -> None:
        """A producer's commit has ended the sleep."""

    def measured(self, *, buckets: int, unsettled: int, blocked: int, unrouted: int) -> None:
        """How things stand now: buckets held, accepted rows that are not marked, and aggregates
        that wait because of a failure, or because no route matches."""

    def surveyed(self, survey: Survey | None) -> None:
        """How the outbox as a whole stands; None when this relay is not the one to say."""

    def purged(self, rows: int) -> None:
        """Published rows beyond the retention were deleted."""
