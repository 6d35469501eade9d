"""Where events are published to."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from outboxd.core.errors import OutboxdError
from outboxd.core.outbox import StoredEvent
from outboxd.core.packing import PackLimits
from outboxd.core.relay_outcomes import EntryResult, Refused
from outboxd.core.settings import Envelope


class PackRefused(OutboxdError):
    """The call was refused because of what is in it, and nothing of it was accepted: a smaller pack
    may pass, and a single entry that does not is to blame."""


class Withheld(OutboxdError):
    """Nothing was sent, for it could have arrived when its sender no longer owned it: a successor
    publishes it. This says nothing of the destination or of the events."""


StillOurs: TypeAlias = Callable[[float], bool]
"""Whether the sender will own what it sends for so many more seconds. Cheap, and asked in the
sending thread."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An event as one destination takes it: what is sent, and how many bytes of its limits that
    uses. `content` is the destination's own affair."""

    content: Any
    size: int


class Destination(Protocol):
    """One queue, topic or bus."""

    @property
    def limits(self) -> PackLimits:
        """How much fits into one call."""

    @property
    def call_seconds(self) -> float:
        """The longest time after the start of `send` at which the destination may still receive
        what was sent."""

    def open(self) -> None:
        """Find out what sending needs, such as an address, unless that is known. Blocks, and is
        called before each `send`, in the same thread. Raises core.errors.Unavailable."""

    def prepare(self, event: StoredEvent, envelope: Envelope) -> Entry | Refused:
        """The event as an entry, or why this destination can never take it. Does no I/O."""

    def send(self, entries: Sequence[Entry], still_ours: StillOurs) -> Sequence[EntryResult]:
        """Send a pack that is within the limits; one result for each entry, in order.

        Asks `still_ours` about `call_seconds` at the last moment before something leaves this
        process, and once more before each further try: the process may have been frozen at any
        moment before. Blocks, and is called in several threads at once. Raises
        core.errors.Unavailable when the call as a whole failed (of kind TIMEOUT when it may have
        been accepted all the same), PackRefused, and Withheld when it is not ours any more.
        """
