"""From the outcomes of a message's handlers to what is done with the message."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from outboxd.core.judging import LONGEST_DELAY_SECONDS
from outboxd.core.outcomes import DeadLetter, Outcome, Retry


class HandlerResult(msgspec.Struct, frozen=True):
    """How far one handler is with one message, after `attempts` failed attempts."""

    handler: str
    outcome: Outcome
    attempts: int = 0


class DeadHandler(msgspec.Struct, frozen=True):
    """A handler that will not be called again for this message."""

    handler: str
    letter: DeadLetter
    attempts: int


class Delete(msgspec.Struct, frozen=True):
    """Every handler has taken effect."""


class Bury(msgspec.Struct, frozen=True):
    """Every handler has ended, these without taking effect: a dead letter, then a delete."""

    dead: tuple[DeadHandler, ...]


class HideFor(msgspec.Struct, frozen=True):
    """Some handler is to be called again."""

    seconds: float


MessagePlan: TypeAlias = Delete | Bury | HideFor


def plan(results: Sequence[HandlerResult]) -> MessagePlan:
    """Any handler pending: again at the earliest delay. Else one letter for all that are dead."""
    delays = [r.outcome.after_seconds for r in results if isinstance(r.outcome, Retry)]
    if delays:
        return HideFor(min(delays))
    dead = tuple(
        DeadHandler(r.handler, r.outcome, r.attempts)
        for r in results
        if isinstance(r.outcome, DeadLetter)
    )
    return Bury(dead) if dead else Delete()


def visibility(seconds: float, elapsed_seconds: float) -> int:
    """Whole seconds to hide a message for, `elapsed_seconds` after its receive.

    SQS takes integers, and refuses what would end more than 12 hours after the receive.
    """
    left = math.floor(LONGEST_DELAY_SECONDS - elapsed_seconds)
    return max(0, min(math.ceil(seconds), left))
