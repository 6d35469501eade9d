"""Events as producers hand them over, and as handlers receive them."""

import os
import time
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec

P = TypeVar("P")

JOB_AGGREGATE = "job"
"""The aggregate type of jobs in the outbox: what routes, and people, tell them from events by."""


def new_event_id() -> UUID:
    """A UUID of version 7 (RFC 9562, 5.7): its leading 48 bits are Unix milliseconds.

    Ids that grow with time keep inserts into `processed_events` at the right edge of its index.
    """
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & (1 << 48) - 1) << 80 | random
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0b11 << 62) | 0b10 << 62
    return UUID(int=value)


class NewEvent(msgspec.Struct, frozen=True):
    """A fact that a producer stores in the outbox, in the transaction of the change it tells of.

    `payload` is anything that msgspec encodes as JSON: a Struct, a dict, a dataclass.
    """

    type: str
    aggregate_type: str
    aggregate_id: str
    payload: Any
    headers: dict[str, str] = {}
    id: UUID = msgspec.field(default_factory=new_event_id)


class NewJob(msgspec.Struct, frozen=True):
    """Work that is to be done once the transaction that it is stored in has committed.

    In the outbox it is an event of the aggregate type "job". Jobs with the same `key` are published
    one after another, in the order of their inserts; without a key a job waits for no other.
    """

    type: str
    payload: Any
    key: str | None = None
    headers: dict[str, str] = {}
    id: UUID = msgspec.field(default_factory=new_event_id)


class Event(msgspec.Struct, Generic[P], frozen=True, kw_only=True):
    """A fact as a handler receives it, the same whatever road it came.

    A job has neither aggregate nor `occurred_at` of its own: its aggregate is empty and its time is
    the moment at which it was sent.
    """

    id: UUID
    type: str
    aggregate_type: str
    aggregate_id: str
    occurred_at: datetime
    payload: P
