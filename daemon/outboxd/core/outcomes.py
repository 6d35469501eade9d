"""What can become of one handler's call: a closed type, matched exhaustively everywhere."""

from enum import StrEnum
from typing import TypeAlias

import msgspec


class DeadReason(StrEnum):
    """Why a message ends in the dead-letter queue."""

    REJECTED = "rejected"
    MAX_ATTEMPTS = "max_attempts"
    MALFORMED = "malformed"
    INVALID_PAYLOAD = "invalid_payload"
    UNKNOWN_TYPE = "unknown_type"
    TIMEOUT = "timeout"
    CRASH = "crash"


class Done(msgspec.Struct, frozen=True):
    """The handler has taken effect, now or in an earlier delivery."""

    duplicate: bool = False


class Retry(msgspec.Struct, frozen=True):
    """The handler wants to be called again, `after_seconds` from now at the earliest."""

    after_seconds: float
    error: str = ""


class DeadLetter(msgspec.Struct, frozen=True):
    """No further call can help; `error` is what a person reads in the dead-letter queue."""

    reason: DeadReason = DeadReason.REJECTED
    error: str = ""


Outcome: TypeAlias = Done | Retry | DeadLetter
