"""Stores events and jobs in the outbox, inside the transaction of whoever calls."""

from outboxd.producer.limits import (
    MANY_BYTES,
    MANY_EVENTS,
    MAX_BYTES,
    MAX_DEPTH,
)
from outboxd.producer.many import publish_many
from outboxd.producer.names import check_event_type
from outboxd.producer.one import enqueue, publish

__all__ = [
    "MANY_BYTES",
    "MANY_EVENTS",
    "MAX_BYTES",
    "MAX_DEPTH",
    "check_event_type",
    "enqueue",
    "publish",
    "publish_many",
]
