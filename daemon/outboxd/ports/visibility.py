"""How long received messages stay invisible to other consumers."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import msgspec

BATCH = 10
"""The most messages whose visibility one call changes."""


class Timeout(msgspec.Struct, frozen=True):
    """Keep a message invisible for `seconds` from now; 0 makes it visible at once."""

    receipt_handle: str
    seconds: int


class Extended(msgspec.Struct, frozen=True):
    """The message stays invisible for the time that was asked for."""


class Lost(msgspec.Struct, frozen=True):
    """The receipt is no longer ours; asking again cannot help."""

    code: str


class Failed(msgspec.Struct, frozen=True):
    """Not now; asking again may help."""

    code: str


TimeoutResult: TypeAlias = Extended | Lost | Failed


class Visibility(Protocol):
    """Changes visibility timeouts, which SQS counts from the moment at which it is asked."""

    async def change(self, queue: str, timeouts: Sequence[Timeout]) -> Sequence[TimeoutResult]:
        """One result for each of at most BATCH timeouts, in their order.

        `queue` is a name in the configuration. Raises Unavailable if the call as a whole did not
        succeed; after a time-out of the call the change may have been made nevertheless. When it
        returns or raises, nothing of it is on its way any more, as far as can be known.
        """
