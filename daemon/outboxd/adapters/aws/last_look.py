"""Asks, when a request is signed and about to be written to its connection, whether it still may.

The SDK builds and signs a request, and may have to fetch credentials for that; a process that is
frozen or suspended meanwhile would send long after its caller has looked at the clock.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from botocore.client import BaseClient

Look = Callable[[], None]
"""Raises what the caller of the SDK is to get, instead of the request being sent."""

_look: ContextVar[Look | None] = ContextVar("outboxd_last_look", default=None)
# Of the context and not of the client: one client serves several threads at once.


def looking_before_sending(client: BaseClient) -> None:
    """From now on the client's calls inside `last_look` ask it. A second time does nothing."""
    # The last of the SDK's events before the connection, and one for each try. Not registered as
    # the last of its handlers, because that is the one that sends (adapters.aws.transport).
    client.meta.events.register("before-send", _ask, unique_id="outboxd-last-look")


@contextmanager
def last_look(look: Look) -> Iterator[None]:
    """Calls that this thread makes in the block ask `look` before each of their tries."""
    before = _look.set(look)
    try:
        yield
    finally:
        _look.reset(before)


def _ask(**_: Any) -> None:
    look = _look.get()
    if look is not None:
        look()
