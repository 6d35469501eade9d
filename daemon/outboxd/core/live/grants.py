"""Which rights on its tables a daemon of this configuration needs: docs/database-roles.md."""

from collections.abc import Iterator

from outboxd.core.live.facts import Grant
from outboxd.core.settings import Settings

MARKS = ("published_at", "attempts", "next_attempt_at", "last_error", "dead_at", "delivered_to")
"""What the relay writes of an event."""

INSERTED = (
    "id",
    "event_type",
    "aggregate_type",
    "aggregate_id",
    "payload",
    "headers",
    "occurred_at",
)
"""What a producer writes of an event."""

_ALL = ("SELECT", "INSERT", "UPDATE", "DELETE")


def needed(settings: Settings) -> frozenset[Grant]:
    """Those without which the daemon cannot do its work."""
    grants = {Grant("_yoyo_migration", "SELECT")}
    if settings.relay is not None:
        grants |= set(_relay(wake_up=settings.relay.wake_up))
    if settings.consumed:
        grants |= set(_consumers())
    return frozenset(grants)


def publishing(settings: Settings) -> frozenset[Grant]:
    """Those that handlers need which publish events themselves; nobody can tell which do."""
    if not settings.consumed:
        return frozenset()
    return frozenset(Grant("outbox_events", "INSERT", column) for column in INSERTED)


def _relay(*, wake_up: bool) -> Iterator[Grant]:
    yield from _on("outbox_events", "SELECT", "DELETE")
    yield from (Grant("outbox_events", "UPDATE", column) for column in MARKS)
    yield from _on("outbox_buckets", "SELECT")
    yield from (
        Grant("outbox_buckets", "UPDATE", column) for column in ("owner", "epoch", "lease_until")
    )
    yield from _on("outbox_relays", *_ALL)
    if wake_up:
        yield from _on("outbox_sleepers", *_ALL)


def _consumers() -> Iterator[Grant]:
    yield from _on("processed_events", "SELECT", "INSERT", "DELETE")
    for table in ("handler_failures", "suspects", "inbox_polls", "inbox_gaps"):
        yield from _on(table, *_ALL)


def _on(table: str, *privileges: str) -> Iterator[Grant]:
    return (Grant(table, privilege) for privilege in privileges)
