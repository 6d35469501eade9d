"""What the relay needs of the database: who owns which buckets, the pending rows, their upkeep."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from outboxd.core.errors import OutboxdError
from outboxd.core.horizon import Sample
from outboxd.core.outbox import DeliveryMark, FailureMark, StoredEvent
from outboxd.core.windows import Window


class MarkRefused(OutboxdError):
    """The database answers, but refuses these marks, as for one row that is locked or has a trigger
    that fails: try fewer at a time to find it."""


class ReadCutOff(OutboxdError):
    """The database answers, but this read took longer than a statement may: ask for less."""


class Renewal(msgspec.Struct, frozen=True):
    """The buckets that are ours, by epoch, and how many relays live."""

    epochs: dict[int, int]
    live_relays: int


class Survey(msgspec.Struct, frozen=True):
    """The outbox as a whole; counts end at a cap, so that asking stays cheap."""

    pending: int
    oldest_pending_seconds: float
    dead: int


class Purged(msgspec.Struct, frozen=True):
    """One step of a purge: where it ended, what it deleted, whether rows beyond are too young."""

    last_seq: int
    deleted: int
    finished: bool


class Buckets(Protocol):
    """Leases on buckets, by the database's clock. Everything raises core.errors.Unavailable."""

    async def take_over(
        self, relay: UUID, predecessors: Collection[UUID], lease_seconds: float
    ) -> dict[int, int]:
        """Make the buckets of relays that are known to be dead ours, now; returns their epochs."""

    async def renew(self, relay: UUID, lease_seconds: float) -> Renewal:
        """Say that this relay lives, and renew its leases that have not run out."""

    async def claim(self, relay: UUID, count: int, lease_seconds: float) -> dict[int, int]:
        """Win at most `count` buckets that nobody holds; returns their epochs."""

    async def release(self, relay: UUID, epochs: Mapping[int, int]) -> None:
        """Give these buckets up, those that are still ours under these epochs."""

    async def leave(self, relay: UUID) -> None:
        """This relay no longer counts as one that lives."""


class Outbox(Protocol):
    """Pending rows. Everything raises core.errors.Unavailable while the database is away."""

    async def read(
        self,
        windows: Mapping[int, Window],
        per_bucket: int,
        excluded_keys: str,
        excluded_seqs: Collection[int],
    ) -> list[StoredEvent]:
        """The first pending rows in each bucket's window in the order of `seq`, all from one
        snapshot; at most `per_bucket`, and fewer when they are large. `windows` names the buckets;
        `excluded_keys` is a list with commas. Raises ReadCutOff."""

    async def sample(self) -> Sample:
        """Which transactions are open, and which row is the last."""

    async def mark_published(self, seqs: Collection[int]) -> frozenset[int]:
        """Say that these rows are published; no matter who owns their buckets, it is a fact.

        Returns those that are still pending nevertheless, which nothing should cause. Raises
        MarkRefused, having marked none.
        """

    async def mark_delivered(self, marks: Sequence[DeliveryMark]) -> None:
        """Remember who has accepted these rows already, a fact as well. Raises MarkRefused."""

    async def mark_failed(self, relay: UUID, marks: Sequence[FailureMark]) -> None:
        """Record failures, those whose bucket this relay still owns under that epoch. Raises
        MarkRefused, having recorded none."""


class Upkeep(Protocol):
    """What one relay does for all. Everything raises core.errors.Unavailable."""

    async def survey(self) -> Survey:
        """Look at the outbox as a whole."""

    async def purge(self, older_than_seconds: float, after_seq: int, limit: int) -> Purged:
        """Look at the `limit` rows after `after_seq` and delete the published ones among them that
        are older, and those that an operator discarded, a week ago at least; other rows that are
        pending or dead are never touched."""

    async def forget_relays(self, silent_seconds: float) -> None:
        """Delete the traces of relays that have been silent for so long."""
