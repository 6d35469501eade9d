"""What may be asked of SQS for a lease, and what may come of it: plain data and one rule."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

LONGEST_SECONDS = 43_200
"""SQS keeps a message invisible for twelve hours at the most, counted from its receive."""

Owner = TypeVar("Owner", bound=Hashable)


class Terms(Protocol):
    """What has to be known of a lease; see `channels.protocol.Lease`."""

    @property
    def token(self) -> int: ...
    @property
    def queue(self) -> str: ...
    @property
    def message_id(self) -> str: ...
    @property
    def receipt_handle(self) -> str: ...
    @property
    def received_at(self) -> float: ...
    @property
    def visibility_seconds(self) -> int: ...
    @property
    def permitted_until(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Change(Generic[Owner]):
    """One entry of a call: make the message invisible for `seconds` from now, or 0 to give it back.

    `slack` is the time left on the lease, `attempt` the number of this try, counted from 1.
    """

    owner: Owner
    token: int
    receipt_handle: str
    seconds: int
    slack: float
    attempt: int

    @property
    def gives_back(self) -> bool:
        return self.seconds == 0


@dataclass(frozen=True, slots=True)
class Lost(Generic[Owner]):
    """A held lease ended: SQS says so, its time ran out, or somebody has a newer receipt."""

    owner: Owner
    token: int
    queue: str
    message_id: str


@dataclass(frozen=True, slots=True)
class NothingLeft(Generic[Owner]):
    """A dead owner's lease need not be given back any more."""

    owner: Owner
    token: int


@dataclass(frozen=True, slots=True)
class Limited:
    """A held lease may not be extended any further: the permitted time of its handlers ends with
    it, or SQS's twelve hours do."""

    queue: str


Notice: TypeAlias = Lost[Owner] | NothingLeft[Owner] | Limited


@dataclass(frozen=True, slots=True)
class Due(Generic[Owner]):
    """What one queue needs now."""

    changes: tuple[Change[Owner], ...]
    notices: tuple[Notice[Owner], ...]


def extension_seconds(lease: Terms, deadline: float, now: float) -> int | None:
    """For how long to extend a lease that ends at `deadline`; None once its limit is reached.

    SQS counts whole seconds, from now. The permitted time is rounded up, so that a handler keeps
    its lease to its last moment; the twelve hours are rounded down, or SQS would refuse.
    """
    hours_end = lease.received_at + LONGEST_SECONDS
    if deadline >= lease.permitted_until or deadline > hours_end - 1:
        return None
    seconds = min(
        lease.visibility_seconds,
        math.floor(hours_end - now),
        math.ceil(lease.permitted_until - now),
    )
    return seconds if seconds > 0 else None
