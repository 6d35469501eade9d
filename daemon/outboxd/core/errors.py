"""Errors named for what the catcher does with them."""

from collections.abc import Sequence
from enum import StrEnum


class OutboxdError(Exception):
    """The base of every error that outboxd raises on purpose."""


class SettingsError(OutboxdError):
    """The configuration cannot be used; each problem says where and what was expected."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class AddressInUse(OutboxdError):
    """Another process listens where we should; a later start may find the address free."""


class Reject(OutboxdError):
    """Raise it in a handler when no retry can help: the message is dead-lettered with this text."""


class RetryLater(OutboxdError):
    """Raise it in a handler to be called again after `after_seconds`; it counts as an attempt."""

    def __init__(self, reason: str = "", *, after_seconds: float) -> None:
        self.after_seconds = after_seconds
        super().__init__(reason or f"asked to be called again after {after_seconds:g} s")


class PublishRefused(OutboxdError):
    """This event will never be accepted; retrying cannot help."""


class MetricRefused(OutboxdError):
    """This use of `context.metrics` cannot be counted; the handler's code is to be mended."""


class OutageKind(StrEnum):
    """Why a service could not be used; a closed set, so that it may be a metric's label."""

    UNREACHABLE = "unreachable"
    THROTTLED = "throttled"
    DENIED = "denied"
    MISSING = "missing"
    CREDENTIALS = "credentials"
    SERVER_FAULT = "server_fault"
    TIMEOUT = "timeout"
    OTHER = "other"


class Unavailable(OutboxdError):
    """A database or an AWS service cannot be used now; try again, and count no attempt.

    A `TIMEOUT` is ambiguous: the service may have done what it was asked to do.
    """

    def __init__(self, message: str, kind: OutageKind = OutageKind.UNREACHABLE) -> None:
        self.kind = kind
        super().__init__(message)


class DrainOverrun(OutboxdError):
    """A drain's time was over before its work was: some of it was cut short and given back."""


class HandlerOverran(OutboxdError):
    """A handler that nothing can interrupt is over its time; only its process's end ends it."""


class ProtocolError(OutboxdError):
    """A peer sent a frame that cannot be understood; the channel to it is of no use any more."""
