"""A message, from its sending to its deletion."""

from enum import Enum
from typing import NamedTuple

import msgspec


class State(Enum):
    """Where a message stands; a message that is in no state has left the queue."""

    VISIBLE = "visible"
    IN_FLIGHT = "in flight"
    DELAYED = "delayed"


class AttributeValue(msgspec.Struct, frozen=True, gc=False, rename="pascal", omit_defaults=True):
    """One message attribute, in the shape in which it travels (binary values in base64)."""

    data_type: str = ""
    string_value: str | None = None
    binary_value: bytes | None = None


class Message(msgspec.Struct, gc=False, kw_only=True):
    """What a producer sent, and what has become of it.

    `gc=False`: a message holds no reference that could form a cycle, and a deep queue must not make
    every collection of the interpreter walk through a hundred thousand of them.
    """

    id: str
    body: str
    body_md5: str
    attributes: dict[str, AttributeValue]
    trace_header: str | None
    group: str | None
    deduplication_id: str | None
    sequence: str | None
    sent_at: float
    # Retention counts from here: a standard dead-letter queue keeps the time of the first sending.
    retained_since: float
    # Receives in all queues (what ApproximateReceiveCount reports) and in the present one (what
    # maxReceiveCount is compared with).
    receives: int = 0
    receives_here: int = 0
    first_received_at: float | None = None
    dead_letter_source: str | None = None

    # The present queue's own notes.
    serial: int = 0
    state: State = State.VISIBLE
    receipt: int = 0
    received_at: float = 0.0
    visibility_changed: bool = False
    # There are two of it by now, by a scripted fault.
    copied: bool = False


class Delivery(NamedTuple):
    """A message with the handle that this receive gave out for it."""

    message: Message
    handle: str


class Depth(NamedTuple):
    """Exact numbers of messages in a queue."""

    visible: int
    in_flight: int
    delayed: int
