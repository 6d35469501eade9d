"""Rows of the outbox as the relay holds them, and what it writes back about them."""

import msgspec

BUCKETS = 64
"""Aggregates are spread over so many buckets, by hash; a relay owns whole buckets. Fixed by the
expression of the index `outbox_events_pending` and by the rows of `outbox_buckets`."""


class StoredEvent(msgspec.Struct, frozen=True, gc=False):
    """One pending row.

    `key` is the 64-bit hash of the aggregate. Two aggregates that share a hash are published one
    after the other as if they were one, which is harmless; and an integer is cheap to compare, to
    keep and to exclude from a read. `payload` is JSON text that is never decoded on its way.
    `born_at` (the insert) and `due_at` (not to be tried before) are seconds of this host's
    core.clock.boottime(), which the read converts: no wall clocks are compared.
    """

    key: int
    seq: int
    id: str
    event_type: str
    aggregate_type: str
    aggregate_id: str
    payload: str
    traceparent: str | None
    occurred_at: str
    born_at: float
    attempts: int
    due_at: float
    delivered_to: list[str] | None

    @property
    def bucket(self) -> int:
        return bucket_of(self.key)


def bucket_of(key: int) -> int:
    """The bucket of an aggregate's hash, as the index computes it: PostgreSQL and Python agree on
    `&` of negative numbers."""
    return key & (BUCKETS - 1)


class FailureMark(msgspec.Struct, frozen=True):
    """An opinion on a row: it is written only while this relay still owns the bucket, since a new
    owner may know better by now.

    `delay_seconds` counts from the moment of writing, and is infinite for an event that stays first
    in its aggregate's line until an operator decides; `dead` ends the row's life in the outbox.
    """

    seq: int
    bucket: int
    epoch: int
    attempts: int
    delay_seconds: float
    error: str
    dead: bool


class DeliveryMark(msgspec.Struct, frozen=True):
    """A fact about a row: these destinations have accepted it, others not yet."""

    seq: int
    destinations: tuple[str, ...]
