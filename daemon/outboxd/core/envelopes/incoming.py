"""What comes out of a body: an event, another text to open, or a reason why there is none."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

import msgspec

from outboxd.core.envelopes.outline import Outline
from outboxd.core.errors import OutboxdError


class Malformed(OutboxdError):
    """The body is no envelope that is known; no retry can help."""


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """An event whose payload is still JSON: its type depends on the handler.

    `traceparent` is the trace that it belongs to, as W3C Trace Context writes it, if the road that
    it came has told one.
    """

    id: UUID
    type: str
    aggregate_type: str
    aggregate_id: str
    occurred_at: datetime
    payload: msgspec.Raw
    traceparent: str | None = None


class Road(msgspec.Struct, frozen=True):
    """What is known before a text is opened: from the message, and from the envelopes around it."""

    sent_at: datetime
    traceparent: str | None


class Wrapped(msgspec.Struct, frozen=True):
    """An envelope that holds a text to be opened in its turn. `name` is for the error message."""

    name: str
    text: str | msgspec.Raw
    traceparent: str | None


Step: TypeAlias = Callable[[str | msgspec.Raw, Outline, Road], Incoming | Wrapped | None]
"""Opens an envelope of one kind; None for one that is not its own. Raises Malformed and what
msgspec raises."""
