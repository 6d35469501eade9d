"""What keeps the demo from going on."""

from outboxd.core.errors import OutboxdError


class DemoError(OutboxdError):
    """The demo cannot go on; the message says why, and what to do about it."""
